/** An item with its time. */
interface Timed {
  /** Milliseconds since the traffic began. */
  readonly at: number
}

/**
 * Sends each item when it is due. Open loop: late items are sent immediately, and no item waits for an answer, because real clients don't
 * wait for each other either.
 *
 * @param start start of the traffic, milliseconds since the epoch
 * @param signal ends the traffic early
 */
export async function pace<T extends Timed>(
  items: Iterable<T>,
  start: number,
  send: (item: T, due: number) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const item of items) {
    const due = start + item.at
    await sleepUntil(due, signal)
    if (signal.aborted) return
    send(item, due)
  }
}

/** Waits until `time` and no less, although a timer may fire a millisecond early. Returns early if the signal is aborted. */
export async function sleepUntil(time: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && Date.now() < time) await sleep(time - Date.now(), signal)
}

/** Waits. Returns immediately if the time is not positive, and early if the signal is aborted. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    // Node.js 26 warns about a negative time.
    const timer = setTimeout(done, Math.max(0, milliseconds))
    signal.addEventListener('abort', done)
  })
}
