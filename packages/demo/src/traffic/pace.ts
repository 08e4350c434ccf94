/** Something to be done at a time. */
interface Timed {
  /** Milliseconds since the traffic began. */
  readonly at: number
}

/**
 * Hands out each item when it is due. Open loop: what is late is handed out at once, nothing waits for an answer, as
 * clients don't wait for each other.
 *
 * @param start when the traffic begins, milliseconds since the epoch
 * @param signal ends it early
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

/** Waits until `time`, and not a millisecond less, as a timer alone may; returns early when the signal is aborted. */
export async function sleepUntil(time: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && Date.now() < time) await sleep(time - Date.now(), signal)
}

/** Waits, not at all when the time is over; returns early when the signal is aborted. */
export function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    // Node.js 26 warns of a negative time.
    const timer = setTimeout(done, Math.max(0, milliseconds))
    signal.addEventListener('abort', done)
  })
}
