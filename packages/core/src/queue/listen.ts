import type { Leaving } from './options.ts'

/** The functions to call when a signal is aborted. */
const listening = new WeakMap<Leaving, { readonly all: Set<() => void>; readonly listener: () => void }>()

/**
 * Calls a function when a signal is aborted, until `unlisten`. All requests of a signal share one listener, because Node.js warns about
 * more than ten, and removing one of very many is slow.
 */
export function listen(signal: Leaving, leave: () => void): void {
  if (signal.own === true) {
    signal.addEventListener('abort', leave)
    return
  }
  const known = listening.get(signal)
  if (known !== undefined) {
    known.all.add(leave)
    return
  }
  const all = new Set([leave])
  const listener = (): void => {
    // The last requests first, because no request behind them moves up then.
    for (const one of [...all].reverse()) one()
  }
  listening.set(signal, { all, listener })
  signal.addEventListener('abort', listener)
}

/** Removes the function of a `listen`. The signal's listener is removed with the last function. */
export function unlisten(signal: Leaving, leave: () => void): void {
  if (signal.own === true) {
    signal.removeEventListener('abort', leave)
    return
  }
  const known = listening.get(signal)
  if (known === undefined || !known.all.delete(leave) || known.all.size > 0) return
  listening.delete(signal)
  signal.removeEventListener('abort', known.listener)
}
