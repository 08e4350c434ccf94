import cluster, { type Worker } from 'node:cluster'
import { serveIpc } from '@weir/core/ipc'

/** The message with which the parent stops a process. */
const STOP = 'stop'

/**
 * Runs several processes behind one port. This process distributes the connections, and replaces each process that ends by itself. With
 * `meetHere` it is also their store. The program ends with its processes.
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
    console.log(`The gateway listens on ${url} in ${count} processes. Its health: ${url}/-/health`)
  })
  cluster.on('exit', (worker, code) => {
    if (stopping) {
      worst = Math.max(worst, code)
      if (Object.keys(cluster.workers ?? {}).length === 0) process.exit(worst)
      return
    }
    // A process that never listened can't start, and a new one would fail too.
    if (!listening.delete(worker)) process.exit(code || 1)
    console.error(`Process ${worker.process.pid} has ended; another one starts.`)
    cluster.fork()
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      // A second signal ends the program at once.
      if (stopping) process.exit(1)
      stopping = true
      console.log(`${signal}: finishing open requests.`)
      for (const worker of Object.values(cluster.workers ?? {})) worker?.send(STOP)
    })
  }
  for (let i = 0; i < count; i++) cluster.fork()
}

/** Calls `stop` after SIGTERM or the parent's message. A terminal sends SIGINT to all processes, so only the parent reacts to it. */
export function onStop(stop: () => void): void {
  process.on('SIGINT', () => {})
  process.on('SIGTERM', stop)
  process.on('message', (message) => {
    if (message === STOP) stop()
  })
}
