/**
 * Replaces `node:diagnostics_channel`, `node:os`, `node:worker_threads` and `node:util/types`, as far as core uses them. A page has no
 * subscribers of channels.
 */
export function channel(): { readonly hasSubscribers: false; publish(): void } {
  return { hasSubscribers: false, publish: () => {} }
}

export const hostname = (): string => 'page'
export const threadId = 0
/** Imported only by the contract suites in the package of the simulator, and they are left out. */
export const tmpdir = (): string => '/'

export function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof Promise
}

export function isDate(value: unknown): value is Date {
  return value instanceof Date
}
