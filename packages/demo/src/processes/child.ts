import { type FromChild, isOurs, type Order } from './messages.ts'

/**
 * Connects a child process to its parent: it follows orders, and ends when the channel closes because the parent has ended. Signals
 * often reach the whole process group, so only the parent reacts to them.
 *
 * @param stop ends the work of this process. The process ends after a second even if `stop` is not done
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

/** Sends a message to the parent, if it is still there. */
export function tell(message: FromChild): void {
  // Without a callback a broken channel is an 'error' event, which would end the process with a stack trace.
  if (process.connected) process.send?.(message, () => {})
}

/** Runs a child's start. Sends a failure to the parent as one line. */
export async function startChild(start: () => Promise<void>): Promise<void> {
  try {
    await start()
  } catch (error) {
    tell({ type: 'demo:failed', reason: error instanceof Error ? error.message : String(error) })
    process.exitCode = 1
    setTimeout(() => process.exit(), 200).unref()
  }
}
