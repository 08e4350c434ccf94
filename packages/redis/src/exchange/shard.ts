import { type Clock, WeirError } from '@weir/core'
import { afterSilence, SentLife } from '@weir/core/sync'
import type { Link } from '../connection/link.ts'
import { type ShardKeys, sequenceKey } from '../keys/keys.ts'
import type { Script } from '../scripts/script.ts'
import { Sequence } from './sequence.ts'
import { parseArray, parseSequence, parseTime, replyError } from './wire.ts'

/** Milliseconds. If two readings of a server's clock differ by more than this, the clock was stepped. */
const LEAST_STEP = 1_000

/** Milliseconds in which a process reads an answer that has arrived. */
const LATE = 50

/** The time of a call on the server's clock, and the middle of the call on the process's monotonic clock. */
export interface Moment {
  readonly time: number
  readonly middle: number
}

/** A script's reply. */
export interface Answer {
  readonly moment: Moment
  /** The reply without the values with which every reply begins. */
  readonly rest: readonly unknown[]
  /** Milliseconds by which the server's clock was set back since the last call. Remaining times of blocks are too long by this. */
  readonly setBack: number
}

export interface BucketOptions {
  readonly keys: ShardKeys
  readonly nodeId: string
  readonly clock: Clock
  readonly link: Link
  readonly timeout: number
  /** Called if the shard has lost data. */
  lost(): void
}

/** Makes a script's argument from the values that all scripts need. */
type ArgumentOf = (common: object) => string

/** A call without an answer. */
interface Pending {
  readonly since: number
  /** False once its timeout was noticed, true a moment later: a process that was busy or frozen may not have read the answer yet. */
  late?: boolean
}

/** The calls of scripts by one process in one shard. */
export class Shard {
  readonly keys: ShardKeys
  /** The version of the block list that this process last received. */
  cursor = 0
  readonly #options: BucketOptions
  readonly #sequence = new Sequence()
  readonly #sequenceKey: string
  #last: Moment | undefined
  readonly #sent = new SentLife()
  /** The times at which unanswered calls were sent, on the monotonic clock. No Set, for the reason in core's `Flights`. */
  #pending: Pending[] = []

  constructor(options: BucketOptions) {
    this.keys = options.keys
    this.#options = options
    this.#sequenceKey = sequenceKey(options.keys, options.nodeId)
  }

  /**
   * Calls a script, and again if a good connection was lost and replaced at once. The scripts are idempotent.
   *
   * @param life - as `lifeOf` returns it
   * @param nodesTime - the processes' common time, and the time on this process's monotonic clock at which it applied (`middle`)
   */
  async call(script: Script, keys: readonly string[], argumentOf: ArgumentOf, life: number, nodesTime?: Moment): Promise<Answer> {
    const { link } = this.#options
    try {
      return await this.#call(script, keys, argumentOf, life, nodesTime)
    } catch (error) {
      if (!(await link.replaced(this.#sequenceKey))) throw error
      return await this.#call(script, keys, argumentOf, life, nodesTime)
    }
  }

  async #call(script: Script, keys: readonly string[], argumentOf: ArgumentOf, life: number, nodesTime?: Moment): Promise<Answer> {
    const { clock, link, nodeId } = this.#options
    const call: Pending = { since: clock.monotonic() }
    this.#rejectWhenSilent(call.since)
    this.#pending.push(call)
    try {
      const sequence = this.#sequence.next()
      const now = nodesTime && nodesTime.time + (call.since - nodesTime.middle)
      const sequenceTtl = Math.ceil(this.#sent.sent(call.since, life))
      const argument = argumentOf({ node: nodeId, sequence, sequenceTtl, now })
      const { log, ends, keep, hot, hand, resets } = this.keys
      const reply = parseArray(await link.run(script, [this.#sequenceKey, log, ends, keep, hot, hand, resets, ...keys], argument))
      link.heardAt = clock.monotonic()
      const middle = (call.since + link.heardAt) / 2
      const [seconds, microseconds, before, ...rest] = reply
      const moment = { time: parseTime(seconds, microseconds), middle }
      if (before === undefined) throw replyError('too short')
      const missing = this.#sequence.answered(sequence, parseSequence(before))
      if (this.#sent.answered(call.since, life) && missing) this.#options.lost()
      const step = this.#last === undefined ? 0 : moment.time - this.#last.time - (moment.middle - this.#last.middle)
      this.#last = moment
      // With a common time of the processes, a step has no effect. Small steps are not corrected, because slow networks and drift look the
      // same.
      return { moment, rest, setBack: now === undefined && step < -LEAST_STEP ? -step : 0 }
    } finally {
      const place = this.#pending.indexOf(call)
      if (place >= 0) this.#pending.splice(place, 1)
    }
  }

  /**
   * Rejects further calls while one waits beyond the timeout, because they would pile up at a server that hangs. After three times the
   * timeout the connection is replaced.
   */
  #rejectWhenSilent(now: number): void {
    const { clock, timeout, link } = this.#options
    for (const call of this.#pending) {
      const { since } = call
      if (now - since <= timeout) continue
      if (call.late === undefined) {
        call.late = false
        afterSilence(clock, LATE, () => {
          call.late = true
        })
      }
      if (!call.late) continue
      const long = now - since > 3 * timeout
      if (long) this.#pending = []
      // If other calls were answered since, only a part of a Cluster hangs. Its slots will move, and the other connections are good.
      link.silent(long && link.heardAt <= since)
      throw timedOut(timeout)
    }
  }
}

export function timedOut(timeout: number): WeirError {
  return new WeirError(
    'WEIR_STORE_TIMEOUT',
    `Redis did not answer within ${timeout} ms. Check its load and the network, or raise "timeout" of the store.`,
  )
}
