import type { Throttler } from '@weir/core'
import type { ClusterNode, ProcessEvent } from '@weir/core/inspect'
import { isLongerThanCooldown } from './key-memory.ts'
import { modesOf } from './mode.ts'
import type { LogEntry } from './protocol.ts'
import { span } from './span.ts'
import { visible } from './visible.ts'

/** The most entries of blocks, and of all other kinds. They are kept apart so that many blocks can't push out other entries. */
const KEPT = 40
/** The most entries of other processes. */
const MOST_OTHERS = 2 * KEPT
const LONGEST_KEY = 120
const LONGEST_TEXT = 2_000

/** Milliseconds within which reports of several processes are the same event. */
const SAME = 10_000

/** An entry, and the event that it describes. */
interface Kept {
  readonly entry: LogEntry
  /** The same for reports of one event by several processes. */
  readonly id: string
  /** Whether another process caused the event. */
  readonly isEcho: boolean
}

/** The newest changes of state of all processes, newest first. */
export class Log {
  #blocks: Kept[] = []
  #rest: Kept[] = []
  #others: Kept[] = []
  readonly #throttler: Throttler<string, never>
  readonly #offs: (() => void)[]

  /** @param changed - called after each entry */
  constructor(throttler: Throttler<string, never>, changed: () => void) {
    this.#throttler = throttler
    const add = (kind: LogEntry['kind'], text: string, policy?: string, id = '', isEcho = false): void => {
      const list = kind === 'blocked' || kind === 'unblocked' ? this.#blocks : this.#rest
      const mode = policy === undefined ? undefined : modesOf(throttler)(policy)
      const entry: LogEntry = { time: Date.now(), kind, text: text.slice(0, LONGEST_TEXT), ...(mode !== undefined && { mode }) }
      list.unshift({ entry, id, isEcho })
      list.length = Math.min(list.length, KEPT)
      changed()
    }
    this.#offs = [
      throttler.on('blocked', ({ policy, key, cause, durationMs }) => {
        const id = idOf({ name: 'blocked', policy, key })
        add('blocked', blockedText(throttler, policy, key, cause, durationMs), policy, id, cause === 'remote')
      }),
      throttler.on('unblocked', ({ policy, key, cause }) => {
        add('unblocked', unblockedText(policy, key, cause), policy, idOf({ name: 'unblocked', policy, key }), cause === 'remote')
      }),
      throttler.on('storeDown', ({ cause }) => add('storeDown', `The store is down: ${messageOf(cause)}`)),
      throttler.on('storeUp', ({ durationMs: after }) => add('storeUp', storeUpText(after))),
      throttler.on('overflow', ({ policy, maxKeys }) => add('overflow', `The table of ${policy} is full, with ${maxKeys} keys`)),
      throttler.on('nodes', ({ nodes, before }) =>
        add('nodes', `${livePhrase(nodes)}, before ${before}`, undefined, idOf({ name: 'nodes', count: nodes })),
      ),
      throttler.on('rulesApplied', ({ version, before, by, why }) => {
        const who = by === undefined ? '' : `, by ${visible(by)}`
        add(
          'rules',
          `version ${version} applied, before ${before ?? 'policies in code'}${who}${why === undefined ? '' : `: ${visible(why)}`}`,
          undefined,
          idOf({ name: 'rulesApplied', count: version }),
        )
      }),
      throttler.on('warning', ({ error }) => add('warning', visible(error.message))),
    ]
  }

  /** Adds the events that other processes have reported. `time` is in milliseconds since the Unix epoch. */
  report(nodes: readonly ClusterNode[], time: number): void {
    const oldest = this.#others.length < MOST_OTHERS ? Number.NEGATIVE_INFINITY : (this.#others.at(-1) as Kept).entry.time
    for (const { node, label, self, ageMs, events } of nodes) {
      if (self) continue
      for (const event of events) {
        // The process that caused it reports it too.
        if (event.cause === 'remote') continue
        const id = idOf(event, node)
        const at = time - ageMs - event.ageMs
        // An entry that old would be removed again.
        if (at < oldest || isAmong(this.#others, id, at)) continue
        const { policy } = event
        const mode = policy === undefined ? undefined : modesOf(this.#throttler)(policy)
        const text = textOf(this.#throttler, event).slice(0, LONGEST_TEXT)
        const entry: LogEntry = { time: at, kind: KINDS[event.name], text, process: label, ...(mode !== undefined && { mode }) }
        this.#others.push({ entry, id, isEcho: false })
      }
    }
    this.#others = this.#others.sort((a, b) => b.entry.time - a.entry.time).slice(0, MOST_OTHERS)
  }

  /** Each event once. Its entry is that of the process that caused it, if known. */
  get entries(): readonly LogEntry[] {
    const own = [...this.#blocks, ...this.#rest]
    const caused = own.filter(({ isEcho }) => !isEcho)
    return [
      ...own.filter(({ id, isEcho, entry }) => !isEcho || !isAmong(this.#others, id, entry.time)),
      ...this.#others.filter(({ id, entry }) => !isAmong(caused, id, entry.time)),
    ]
      .map(({ entry }) => entry)
      .sort((a, b) => b.time - a.time)
  }

  close(): void {
    for (const off of this.#offs) off()
  }
}

const KINDS = {
  blocked: 'blocked',
  unblocked: 'unblocked',
  storeUp: 'storeUp',
  overflow: 'overflow',
  nodes: 'nodes',
  rulesApplied: 'rules',
} as const satisfies Record<ProcessEvent['name'], LogEntry['kind']>

/** Blocks, live processes and rules concern all processes. Others are the process's own. */
function idOf({ name, policy, key, count }: Partial<ProcessEvent>, node = ''): string {
  return JSON.stringify(name === 'storeUp' || name === 'overflow' ? [name, node, policy] : [name, policy, key, count])
}

function isAmong(list: readonly Kept[], id: string, time: number): boolean {
  return list.some((one) => one.id === id && Math.abs(one.entry.time - time) < SAME)
}

function textOf(throttler: Throttler<string, never>, event: ProcessEvent): string {
  const { name, policy = '', key = '', cause = '', durationMs, count = 0 } = event
  switch (name) {
    case 'blocked':
      return blockedText(throttler, policy, key, cause, durationMs)
    case 'unblocked':
      return unblockedText(policy, key, cause)
    case 'storeUp':
      return storeUpText(durationMs ?? 0)
    case 'overflow':
      return `The table of ${policyText(policy)} is full, with ${count} keys`
    case 'nodes':
      return livePhrase(count)
    case 'rulesApplied':
      return `version ${count} applied`
  }
}

/** @param ms undefined or infinite for a block without an end */
function blockedText(
  throttler: Throttler<string, never>,
  policy: string,
  key: string,
  cause: string,
  ms = Number.POSITIVE_INFINITY,
): string {
  const length = Number.isFinite(ms) ? `for ${span(ms)}` : 'without an end'
  const why = cause === 'manual' ? 'manually' : cause === 'remote' ? 'by another process' : 'exceeded its limit'
  const end = cause === 'exceeded' && isLongerThanCooldown(throttler, policy, ms) ? ' (until the interval ends)' : ''
  return `${short(key)} in ${policyText(policy)} ${length}${end}, ${why}`
}

function unblockedText(policy: string, key: string, cause: string): string {
  return `${short(key)} in ${policyText(policy)}, ${cause === 'manual' ? 'manually' : cause === 'remote' ? 'by another process' : 'expired'}`
}

/** Names come from other processes too. */
function policyText(name: string): string {
  return visible(name.slice(0, LONGEST_KEY))
}

function storeUpText(ms: number): string {
  return `The store answers again, after ${(ms / 1_000).toFixed(1)} s`
}

function livePhrase(count: number): string {
  return `${count} live ${count === 1 ? 'process' : 'processes'}`
}

/** Isolates the key's direction, because a right-to-left key would change the order of its line. */
function short(key: string): string {
  return `\u2068${visible(key.length > LONGEST_KEY ? `${key.slice(0, LONGEST_KEY)}…` : key)}\u2069`
}

function messageOf(cause: unknown): string {
  return visible(cause instanceof Error ? cause.message : String(cause))
}
