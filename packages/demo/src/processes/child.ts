import { type FromChild, isOurs, type Order } from './messages.ts'

/**
 * The part that every child process shares: it obeys the parent and ends with it. If the parent is gone for any reason, the channel closes.
 * Signals often reach the whole process group; only the parent acts on them.
 *
 * @param stop ends the work of this process; it may take a second, then the process ends anyway
 */
export function serveParent(stop: () => Promise<void> | void, onOrder: (order: Order) => void = () => {}): void {
  let stopping = false
  const end = (): void => {
    if (stopping) return
    stopping = true
    const exit = (): never => process.exit(0)
    setTimeout(exit, 1000).unref()
    Promise.resolve().then(stop).then(exit, exit)
  }
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.on(signal, () => {})
  process.on('disconnect', end)
  process.on('message', (message) => {
    if (!isOurs<Order>(message)) return
    if (message.type === 'demo:stop') end()
    else onOrder(message)
  })
}

/** Tells the parent; does nothing once it is gone. */
export function tell(message: FromChild): void {
  // Without a callback a broken channel is an 'error' event, which would end the process with a stack trace.
  if (process.connected) process.send?.(message, () => {})
}

/** Runs a child's start; what goes wrong is told to the parent in one line. */
export async function startChild(start: () => Promise<void>): Promise<void> {
  try {
    await start()
  } catch (error) {
    tell({ type: 'demo:failed', reason: error instanceof Error ? error.message : String(error) })
    process.exitCode = 1
    setTimeout(() => process.exit(), 200).unref()
  }
}
