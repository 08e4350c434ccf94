import type { Leaving } from './options.ts'

/** The functions to call when a signal is aborted. */
const listening = new WeakMap<Leaving, { readonly all: Set<() => void>; readonly listener: () => void }>()

/**
 * Calls a function when a signal is aborted, until `unlisten`. A signal gets one listener, however many requests wait with it: Node.js warns of
 * more than ten, and takes long to remove one of very many.
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
    // The last ones first: nobody is behind them who would move up.
    for (const one of [...all].reverse()) one()
  }
  listening.set(signal, { all, listener })
  signal.addEventListener('abort', listener)
}

/** Takes the function of a `listen` back. The signal's listener is removed with the last one. */
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
