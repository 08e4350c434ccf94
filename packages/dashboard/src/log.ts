import type { Throttler } from '@weir/core'
import { isLongerThanCooldown } from './key-memory.ts'
import { modesOf } from './mode.ts'
import type { LogEntry } from './protocol.ts'
import { span } from './span.ts'
import { visible } from './visible.ts'

/** The most entries of blocks, and of all other kinds. They are kept apart so that many blocks can't push out other entries. */
const KEPT = 40
const LONGEST_KEY = 120
const LONGEST_TEXT = 2_000

/** The newest changes of state, newest first. */
export class Log {
  #blocks: LogEntry[] = []
  #rest: LogEntry[] = []
  readonly #offs: (() => void)[]

  /** @param changed - called after each entry */
  constructor(throttler: Throttler<string, never>, changed: () => void) {
    const add = (kind: LogEntry['kind'], text: string, policy?: string): void => {
      const list = kind === 'blocked' || kind === 'unblocked' ? this.#blocks : this.#rest
      const mode = policy === undefined ? undefined : modesOf(throttler)(policy)
      list.unshift({ time: Date.now(), kind, text: text.slice(0, LONGEST_TEXT), ...(mode !== undefined && { mode }) })
      list.length = Math.min(list.length, KEPT)
      changed()
    }
    this.#offs = [
      throttler.on('blocked', ({ policy, key, cause, durationMs: ms }) => {
        const why = cause === 'manual' ? 'manually' : cause === 'remote' ? 'by another process' : 'exceeded its limit'
        const end = cause === 'exceeded' && isLongerThanCooldown(throttler, policy, ms) ? ' (until the interval ends)' : ''
        add('blocked', `${short(key)} in ${policy} for ${span(ms)}${end}, ${why}`, policy)
      }),
      throttler.on('unblocked', ({ policy, key, cause }) => {
        const why = cause === 'manual' ? 'manually' : cause === 'remote' ? 'by another process' : 'expired'
        add('unblocked', `${short(key)} in ${policy}, ${why}`, policy)
      }),
      throttler.on('storeDown', ({ cause }) => add('storeDown', `The store is down: ${messageOf(cause)}`)),
      throttler.on('storeUp', ({ durationMs: after }) => add('storeUp', `The store answers again, after ${(after / 1_000).toFixed(1)} s`)),
      throttler.on('overflow', ({ policy, maxKeys }) => add('overflow', `The table of ${policy} is full, with ${maxKeys} keys`)),
      throttler.on('nodes', ({ nodes, before }) =>
        add('nodes', `${nodes} live ${nodes === 1 ? 'process' : 'processes'}, before ${before}`),
      ),
      throttler.on('rulesApplied', ({ version, before, by, why }) => {
        const who = by === undefined ? '' : `, by ${visible(by)}`
        add(
          'rules',
          `version ${version} applied, before ${before ?? 'policies in code'}${who}${why === undefined ? '' : `: ${visible(why)}`}`,
        )
      }),
      throttler.on('warning', ({ error }) => add('warning', visible(error.message))),
    ]
  }

  get entries(): readonly LogEntry[] {
    return [...this.#blocks, ...this.#rest].sort((a, b) => b.time - a.time)
  }

  close(): void {
    for (const off of this.#offs) off()
  }
}

/** Isolates the key's direction, because a right-to-left key would change the order of its line. */
function short(key: string): string {
  return `\u2068${visible(key.length > LONGEST_KEY ? `${key.slice(0, LONGEST_KEY)}…` : key)}\u2069`
}

function messageOf(cause: unknown): string {
  return visible(cause instanceof Error ? cause.message : String(cause))
}
