import cluster, { type Worker } from 'node:cluster'
import { serveIpc } from '@weir/core/ipc'

/** What the parent tells a process that is to end. */
const STOP = 'stop'

/**
 * Several processes behind one port. This one hands connections out, is the place where they meet if they have no other, and
 * starts another one for each that ends by itself. It never returns.
 */
export async function runProcesses(count: number, meetHere: boolean): Promise<void> {
  if (meetHere) serveIpc()
  const listening = new Set<Worker>()
  let stopping = false
  let worst = 0
  cluster.on('listening', (worker, { address, port }) => {
    listening.add(worker)
    if (listening.size !== count) return
    const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}`
    console.log(`The gateway listens on ${url} in ${count} processes; its health: ${url}/-/health`)
  })
  cluster.on('exit', (worker, code) => {
    if (stopping) {
      worst = Math.max(worst, code)
      if (Object.keys(cluster.workers ?? {}).length === 0) process.exit(worst)
      return
    }
    // What could not even begin, nor will another one.
    if (!listening.delete(worker)) process.exit(code || 1)
    console.error(`Process ${worker.process.pid} has ended; another one starts.`)
    cluster.fork()
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // Asked twice: somebody is in a hurry.
      if (stopping) process.exit(1)
      stopping = true
      console.log(`${signal}: finishing what is under way.`)
      for (const worker of Object.values(cluster.workers ?? {})) worker?.send(STOP)
    })
  }
  for (let i = 0; i < count; i++) cluster.fork()
}

/** Calls what ends this process when its parent says so. The signal of a terminal reaches all of them; the parent is who acts on it. */
export function onStop(stop: () => void): void {
  process.on('SIGINT', () => {})
  process.on('SIGTERM', stop)
  process.on('message', (message) => {
    if (message === STOP) stop()
  })
}
