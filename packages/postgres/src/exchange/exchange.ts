import {
  type BlockChange,
  type HeartbeatReply,
  lifeOf,
  type SyncEntry,
  type SyncReply,
  type SyncRequest,
  type SyncResult,
} from '@weir/core/sync'
import { escapeText, nameOf } from '../keys/keys.ts'
import { asArray, asObject, asRemaining, asText, asTime, asWhole, LONGEST_TIME, replyError, understood } from '../reply/check.ts'
import { isOfData } from '../reply/of-data.ts'
import { beatOf, heartbeatOf } from './heartbeat.ts'
import type { Losses } from './losses.ts'
import { PolicyList, type PolicyNames } from './policies.ts'
import { resultsOf } from './results.ts'
import { Rows } from './rows.ts'

/** The most entries, and the most changes of blocks, of one call. It takes the server some ten milliseconds and locks their rows. */
const MOST_ENTRIES = 500
/** The most calls of one heartbeat, each with thousands of changed blocks. The next heartbeat receives the rest. */
const MOST_PAGES = 64
/** Milliseconds. If two readings of the server's clock differ by more than this, the clock was stepped. */
const LEAST_STEP = 1_000

/** State that the syncs of one process share. */
export interface ExchangeContext {
  readonly node: string
  readonly names: PolicyNames
  readonly losses: Losses
  readonly channel: string | undefined
  /** The last reply of the server, on its clock and on this process's. */
  last: Moment | undefined
  monotonic(): number
  /** Calls `exchange_1` and returns its JSON. */
  call(values: unknown[]): Promise<string>
}

/** The time of a call on the server's clock, and the middle of the call on the process's monotonic clock. */
export interface Moment {
  readonly time: number
  readonly middle: number
}

/** One sync: one call, or several in sequence if it is large. At the timeout, parts that were answered count, and the rest has failed. */
export class Exchange {
  readonly #request: SyncRequest
  readonly #context: ExchangeContext
  readonly #begun: number
  readonly #life: number
  readonly #progressed: () => void
  readonly #results: (SyncResult | undefined)[]
  readonly #blocks: (number | undefined)[]
  #heartbeat: HeartbeatReply | undefined
  #answered = false

  /** @param progressed called at each reply, so that a large sync may take longer than the timeout */
  constructor(request: SyncRequest, context: ExchangeContext, progressed: () => void) {
    this.#request = request
    this.#life = lifeOf(request)
    this.#context = context
    this.#begun = context.monotonic()
    this.#progressed = progressed
    this.#results = request.entries.map(() => undefined)
    this.#blocks = request.blocks.map(() => undefined)
  }

  /** Whether the server answered anything. */
  get answered(): boolean {
    return this.#answered
  }

  async run(): Promise<void> {
    const { entries, blocks, heartbeat } = this.#request
    // Blocks change first, so that the entries' results already show them.
    let from = 0
    for (; blocks.length - from > MOST_ENTRIES; from += MOST_ENTRIES) await this.#call([], 0, from, from + MOST_ENTRIES)
    let at = 0
    do {
      const last = at + MOST_ENTRIES >= entries.length
      const part = last && at === 0 ? entries : entries.slice(at, at + MOST_ENTRIES)
      await this.#call(part, at, from, blocks.length, last)
      from = blocks.length
      at += MOST_ENTRIES
    } while (at < entries.length)
    if (heartbeat !== undefined && this.#heartbeat === undefined) throw replyError('no heartbeat')
  }

  /** The reply so far. `middle`: the middle of the sync on the process's monotonic clock. */
  reply(middle: number): SyncReply {
    const moment = this.#context.last as Moment
    return {
      time: moment.time + (middle - moment.middle),
      results: [...this.#results],
      blocks: [...this.#blocks],
      ...(this.#heartbeat && { heartbeat: this.#heartbeat }),
    }
  }

  /**
   * Calls with some entries and blocks. An invalid value in one row may fail a whole call. Then each half is called alone, and so on, until
   * only that key fails.
   *
   * @param beats whether the call includes the heartbeat
   */
  async #call(entries: readonly SyncEntry[], at: number, firstBlock: number, endBlock: number, beats = false): Promise<void> {
    try {
      await this.#callOnce(entries, at, firstBlock, endBlock, beats)
    } catch (error) {
      const blocks = endBlock - firstBlock
      if (!isOfData(error) || entries.length + blocks === 0) throw error
      const half = Math.floor(entries.length / 2)
      const middle = firstBlock + Math.ceil(blocks / 2)
      if (blocks > 1) await this.#call([], 0, firstBlock, middle)
      if (blocks > 1 || (blocks === 1 && entries.length > 0)) await this.#call([], 0, blocks > 1 ? middle : firstBlock, endBlock)
      if (half > 0) await this.#call(entries.slice(0, half), at, endBlock, endBlock)
      if (half > 0 || (blocks > 0 && entries.length > 0)) await this.#call(entries.slice(half), at + half, endBlock, endBlock)
      // The rest of the call, which may include the heartbeat. It also proves that the server is up.
      await this.#callOnce([], 0, endBlock, endBlock, beats)
    }
  }

  async #callOnce(entries: readonly SyncEntry[], at: number, firstBlock: number, endBlock: number, beats: boolean): Promise<void> {
    const blocks = this.#request.blocks.slice(firstBlock, endBlock)
    const heartbeat = beats ? this.#request.heartbeat : undefined
    const { names, losses } = this.#context
    const policies = new PolicyList(policiesOf(entries, blocks, heartbeat?.policies ?? []), names)
    const rows = new Rows(entries, policies)
    const told = entries.filter(({ epoch = 0 }) => epoch > 0)
    const changes = [
      ...blocks.map((change) => changeOf(change, policies, true)),
      ...told.map(({ policy, key, epoch }) =>
        changeOf({ policy, key, kind: 'reset', remaining: 0, epoch: epoch as number }, policies, false),
      ),
    ]
    const asks = entries.filter(({ ask }) => ask).map(({ policy, key }) => ['a', names.of(policy), escapeText(key)])
    const { reply, setBack } = await this.#send(
      {
        ...(changes.length > 0 && { blocks: changes }),
        ...(asks.length > 0 && { asks }),
        ...(rows.buckets.length > 0 && { buckets: rows.buckets }),
        ...(rows.leases.length > 0 && { leases: rows.leases }),
        ...(heartbeat && { beat: beatOf(heartbeat, names) }),
      },
      [...policies.columns(), ...rows.columns()],
    )
    const left = asArray(reply['blocks'])
    blocks.forEach((_, i) => {
      this.#blocks[firstBlock + i] = understood(() => Math.max(0, asRemaining(left[i]) - setBack))
    })
    resultsOf(reply, rows.places, setBack).forEach((result, i) => {
      this.#results[at + i] = result
    })
    if (heartbeat === undefined) return
    let found = heartbeatOf(reply['beat'], heartbeat, losses.generation, names, setBack)
    for (let page = 1; page < MOST_PAGES && found.more; page++) {
      const { cursor } = found.reply
      const next = await this.#send({ beat: beatOf({ ...heartbeat, cursor }, names) }, emptyColumns(policies))
      const { reply: rest, more } = heartbeatOf(next.reply['beat'], heartbeat, losses.generation, names, next.setBack)
      found = { reply: { ...found.reply, cursor: rest.cursor, blocks: [...found.reply.blocks, ...rest.blocks] }, more }
    }
    // A later page may have shown a loss, so the generation is read again.
    this.#heartbeat = { ...found.reply, generation: losses.generation }
  }

  async #send(
    more: object,
    columns: unknown[][],
  ): Promise<{ readonly reply: Readonly<Record<string, unknown>>; readonly setBack: number }> {
    const { node, losses, channel, monotonic } = this.#context
    const since = monotonic()
    const { sequence, kept } = losses.next(since, this.#life)
    const { time } = this.#request
    const now = time === undefined ? undefined : time + (since - this.#begun)
    const request = { node, sequence, kept, ...(now !== undefined && { now }), ...(channel !== undefined && { channel }), ...more }
    const reply = asObject(JSON.parse(await this.#context.call([JSON.stringify(request), ...columns])))
    const moment = { time: asTime(reply['t']), middle: (since + monotonic()) / 2 }
    losses.answered(sequence, asWhole(reply['before']), asText(reply['tables']), since, this.#life)
    const before = this.#context.last
    const step = before === undefined ? 0 : moment.time - before.time - (moment.middle - before.middle)
    this.#context.last = moment
    this.#answered = true
    this.#progressed()
    // With a common time of the processes, a step has no effect. Small steps are not corrected, because slow networks and drift look the
    // same.
    return { reply, setBack: now === undefined && step < -LEAST_STEP ? -step : 0 }
  }
}

function* policiesOf(
  entries: readonly SyncEntry[],
  blocks: readonly BlockChange[],
  more: readonly SyncEntry['policy'][],
): Iterable<SyncEntry['policy']> {
  for (const { policy } of entries) yield policy
  for (const { policy } of blocks) yield policy
  yield* more
}

/** Columns with the policies only, without any key. */
function emptyColumns(policies: PolicyList): unknown[][] {
  return [...policies.columns(), ...new Rows([], policies).columns()]
}

/** @param told whether the reply must contain its outcome */
function changeOf({ policy, key, kind, remaining, epoch, manual, growth }: BlockChange, policies: PolicyList, told: boolean): object {
  const escaped = escapeText(key)
  const name = nameOf(escaped)
  return {
    p: policies.placeOf(policy),
    k: name,
    ...(name !== escaped && { l: escaped }),
    kind,
    remaining: Math.min(LONGEST_TIME, Math.max(0, remaining)),
    ...(epoch !== undefined && { epoch }),
    ...(manual && { manual }),
    ...(growth && { factor: growth.factor, max: Math.min(LONGEST_TIME, growth.max), memory: Math.min(LONGEST_TIME, growth.memory) }),
    told,
  }
}
