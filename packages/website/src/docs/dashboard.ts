import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { createThrottler } from '@weir/core'
import { dashboard as handlerOf } from '@weir/dashboard'
import { launch } from '@weir/tooling/browser'
import type { Browser, BrowserContextOptions, CDPSession, Page } from 'playwright-core'
import { type Figure, whole } from './figure.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
/** Seconds of the demo. Its Redis is down in the second third. */
const DURATION = 60
/** The demo's policy for clients, whose page is shown. */
const POLICY = 'client'
const FILES = { overview: 'dashboard.webp', policy: 'dashboard-policy.webp', phone: 'dashboard-phone.webp' } as const
/** Keys and policies of the measurement. A search shows 50 bars, and each policy has one. */
const [KEYS, POLICIES, FOUND] = [10_000, 60, 50]
/** Milliseconds of the idle page that are measured. */
const IDLE = 10_000

/** Pictures of the dashboard during a real outage in the demo, and the cost of an open page. */
export const dashboard: Figure = {
  name: 'dashboard',
  makes: [...Object.values(FILES), 'dashboard-cost'],
  about: 'pictures of the dashboard in a run of the demo, and its cost in the browser (2 min)',
  make: async () => {
    const browser = await launch()
    try {
      return { charts: await pictures(browser), tables: { 'dashboard-cost': await cost(browser) } }
    } finally {
      await browser.close()
    }
  },
}

async function pictures(browser: Browser): Promise<Record<string, Uint8Array>> {
  const args = ['--conditions=@weir/source', '--import', 'tsx', 'packages/demo/src/main.ts', '--duration', String(DURATION), '--kill-redis']
  const demo = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const url = await dashboardOf(createInterface({ input: demo.stdout }))
    // A page that is open during the whole run, as during an incident.
    const page = await open(browser, url, { viewport: { width: 1280, height: 1000 } })
    await page.waitForTimeout(DURATION * 850)
    const overview = await picture(page)
    const dark = await open(browser, `${url}#policy=${POLICY}`, { viewport: { width: 1280, height: 760 }, colorScheme: 'dark' })
    await dark.getByRole('slider').fill('90')
    const policy = await picture(dark)
    const phone = await picture(await open(browser, url, { viewport: { width: 390, height: 760 } }))
    return { [FILES.overview]: overview, [FILES.policy]: policy, [FILES.phone]: phone }
  } finally {
    demo.kill('SIGTERM')
    if (demo.exitCode === null) await once(demo, 'exit')
  }
}

async function dashboardOf(lines: AsyncIterable<string>): Promise<string> {
  for await (const line of lines) {
    const url = /^dashboard: (\S+)/.exec(line.trim())?.[1]
    if (url !== undefined) return url
  }
  throw new Error('The demo ended without a dashboard.')
}

async function open(browser: Browser, url: string, options: BrowserContextOptions): Promise<Page> {
  const context = await browser.newContext({ timezoneId: 'UTC', locale: 'en-GB', deviceScaleFactor: 1, ...options })
  const page = await context.newPage()
  await page.goto(url)
  await page.getByRole('heading', { name: 'Requests over time' }).waitFor()
  return page
}

/** The visible part of a page as WebP, which needs half the bytes of PNG. */
async function picture(page: Page): Promise<Uint8Array> {
  // Waits for the answers to the page's questions, and for the next view.
  await page.waitForTimeout(1_500)
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 })
  return Buffer.from(data, 'base64')
}

async function cost(browser: Browser): Promise<readonly (readonly string[])[]> {
  const policies = Array.from({ length: POLICIES }, (_, i) => ({
    name: `policy-${i}`,
    limit: 100,
    interval: '1h' as const,
    coordination: 'local' as const,
  }))
  const throttler = createThrottler({ policies })
  for (let i = 0; i < KEYS; i++) throttler.charge(`${i < FOUND ? 'needle' : 'user'}-${i}`, 1, { policy: 'policy-0' })
  for (const { name: policy } of policies) throttler.charge('user', 1, { policy })
  const handler = handlerOf(throttler, { authorize: 'none' })
  const server = createServer(handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const page = await open(browser, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
      viewport: { width: 1280, height: 1000 },
    })
    await page.waitForTimeout(2_000)
    const times: number[] = []
    for (const text of ['user', 'needle', 'er-7', 'needle-', 'need']) times.push((await page.evaluate(searchFor(text))) as number)
    const search = times.sort((one, other) => one - other)[2] ?? 0
    await page.waitForTimeout(1_000)
    const bars = await page.locator('.bar').count()
    const session = await page.context().newCDPSession(page)
    await session.send('Performance.enable')
    const before = await busy(session)
    await page.waitForTimeout(IDLE)
    const idle = ((await busy(session)) - before) / (IDLE / 1_000)
    return [
      ['An open page', 'measured'],
      [`Main thread of an idle page with ${bars} bars`, `${whole(idle)} ms per second`],
      [`A search over ${whole(KEYS)} keys, until the page shows ${FOUND} of them (median of 5)`, `${whole(search)} ms`],
    ]
  } finally {
    handler.close()
    server.closeAllConnections()
    server.close()
    await throttler.close()
  }
}

/** A script that types a text into the search, and returns the milliseconds until all rows of the list contain it. */
function searchFor(text: string): string {
  return `new Promise((resolve) => {
    const input = document.querySelector('[type=search]')
    const list = document.querySelector('[aria-labelledby=top]')
    const start = performance.now()
    const shown = () => {
      const keys = [...list.querySelectorAll('a.key')]
      return list.textContent.startsWith('Found') && keys.length === ${FOUND} && keys.every((key) => key.textContent.includes('${text}'))
    }
    const observer = new MutationObserver(() => {
      if (!shown()) return
      observer.disconnect()
      resolve(performance.now() - start)
    })
    observer.observe(list, { childList: true, subtree: true, characterData: true })
    input.value = '${text}'
    input.dispatchEvent(new Event('input', { bubbles: true }))
  })`
}

/** Milliseconds for which the page's main thread has worked. */
async function busy(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics')
  return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000
}
