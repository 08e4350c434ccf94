import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { serveIpc } from '@weir/core/ipc'
import { startApi } from './api.ts'

const SECONDS = Number(process.env['SECONDS'] ?? 5)
/** The API's limit for any second. The workers stay a fifth below it, because calls don't arrive as evenly as they are sent. */
const ALLOWED = 25

interface Told {
  readonly calls: number
  readonly rejected: number
}

const api = await startApi(ALLOWED)
// Without REDIS_URL, this process is the store of the workers.
if (!process.env['REDIS_URL']) serveIpc()
console.log(`An API that allows ${ALLOWED} calls in any second. Three workers call it for ${SECONDS} s, as fast as the limit allows.`)

const script = fileURLToPath(new URL('./worker.ts', import.meta.url))
const told = await Promise.all(
  [1, 2, 3].map(async (name) => {
    const worker = fork(script, [api.url, String(SECONDS)])
    let said: Told | undefined
    // Weir's own messages use the same channel.
    worker.on('message', (message: object) => {
      if ('calls' in message) said = message as Told
    })
    await once(worker, 'exit')
    console.log(`worker ${name}: ${said === undefined ? 'failed' : `${said.calls} calls, ${said.rejected} of them 429`}`)
    return said
  }),
)
api.close()
console.log(`The API answered ${api.answered} calls and rejected ${api.rejected}. At most ${api.busiest} came within a second.`)
process.exitCode = api.rejected === 0 && told.every((said) => said !== undefined) ? 0 : 1
