// Measures what a picture of twelve nodes costs, in a Chromium whose processor is slowed down four times and that draws without a graphics card:
// processor time of the page's thread, as pictures in a second say more of what else runs on the machine.
import { once } from 'node:events'
import { chromium } from 'playwright-core'
import { buildPlayground } from '../build.js'
import { server } from '../serve.js'

const SECONDS = 10
const SLOWER = 4
/** Milliseconds of a task that a visitor feels. */
const LONG = 50

/** @typedef {{ name: string, ph: string, pid: number, tid: number, dur?: number, tdur?: number }} TraceEvent */

await buildPlayground()
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
const browser = await chromium.launch({
  executablePath: process.env['WEIR_CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
})
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
await page.goto(`http://127.0.0.1:${port}/?scene=limit&nodes=12&load=20&limit=500&rtt=20`)
await page.locator('[data-digest]').waitFor({ timeout: 120_000 })
const session = await page.context().newCDPSession(page)
await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWER })

const tracing = await browser.newBrowserCDPSession()
/** @type {TraceEvent[]} */
const events = []
tracing.on('Tracing.dataCollected', ({ value }) => events.push(.../** @type {any} */ (value)))
const complete = new Promise((resolve) => tracing.once('Tracing.tracingComplete', resolve))
await tracing.send('Tracing.start', {
  transferMode: 'ReportEvents',
  traceConfig: { includedCategories: ['devtools.timeline', 'toplevel'] },
})
await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000))
await tracing.send('Tracing.end')
await complete
await browser.close()
server.close()

const pictures = events.filter(({ name, ph }) => name === 'FireAnimationFrame' && ph === 'X')
const [{ pid, tid } = { pid: 0, tid: 0 }] = pictures
const own = events.filter((event) => event.pid === pid && event.tid === tid && event.ph === 'X')
const tasks = own.filter(({ name }) => name === 'ThreadControllerImpl::RunTask')
const spent = (/** @type {TraceEvent[]} */ some) => some.reduce((sum, { tdur = 0 }) => sum + tdur, 0) / 1000
const per = (/** @type {number} */ total) => (total / pictures.length).toFixed(1)
const long = tasks.filter(({ tdur = 0 }) => tdur / 1000 > LONG).length
console.log(
  `${(pictures.length / SECONDS).toFixed(1)} pictures a second; each takes ${per(spent(tasks))} ms of processor time in all, ` +
    `${per(spent(pictures))} of them scripts, at a processor ${SLOWER} times slower; ${long} tasks of more than ${LONG} ms`,
)
