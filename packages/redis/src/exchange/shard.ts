import { type Clock, WeirError } from '@weir/core'
import type { Link } from '../connection/link.ts'
import { type ShardKeys, sequenceKey } from '../keys/keys.ts'
import type { Script } from '../scripts/script.ts'
import { Sequence } from './sequence.ts'
import { parseArray, parseSequence, parseTime, replyError } from './wire.ts'

/** For how long a bucket remembers a node that is not heard of, milliseconds. Forgetting it only costs a repetition. */
const SEQUENCE_TTL = 600_000

/** Two readings of a server's clock that differ by more than this, milliseconds, mean a step. */
const LEAST_STEP = 1_000

/** When a server handled a call, on its clock, and the middle of the call on the node's monotonic one. */
export interface Moment {
  readonly time: number
  readonly middle: number
}

/** A script's reply. */
export interface Answer {
  readonly moment: Moment
  /** The reply without what all scripts begin it with. */
  readonly rest: readonly unknown[]
  /** The server's clock was set back since the last call by so many milliseconds: blocks seem to last longer by them. */
  readonly setBack: number
}

export interface BucketOptions {
  readonly keys: ShardKeys
  readonly nodeId: string
  readonly clock: Clock
  readonly link: Link
  readonly timeout: number
  /** Called when the bucket turns out to have lost data. */
  lost(): void
}

/** A node's calls of scripts in one bucket. */
export class Shard {
  readonly keys: ShardKeys
  /** Version of the block list up to which this node has heard. */
  cursor = 0
  readonly #options: BucketOptions
  readonly #sequence = new Sequence()
  readonly #sequenceKey: string
  #last: Moment | undefined
  /** Monotonic times at which the calls without an answer were sent. No Set, for the reason told in core's `Flights`. */
  #pending: { readonly since: number }[] = []

  constructor(options: BucketOptions) {
    this.keys = options.keys
    this.#options = options
    this.#sequenceKey = sequenceKey(options.keys, options.nodeId)
  }

  /**
   * Calls a script.
   *
   * @param nodesTime - what the nodes go by, at a time of this node's monotonic clock (`middle`)
   */
  async call(script: Script, keys: readonly string[], argumentOf: (common: object) => string, nodesTime?: Moment): Promise<Answer> {
    const { clock, link, nodeId } = this.#options
    const call = { since: clock.monotonic() }
    this.#rejectWhenSilent(call.since)
    this.#pending.push(call)
    try {
      const sequence = this.#sequence.next()
      const now = nodesTime && nodesTime.time + (call.since - nodesTime.middle)
      const argument = argumentOf({ node: nodeId, sequence, sequenceTtl: SEQUENCE_TTL, now })
      const { log, ends, keep, hot, hand, resets } = this.keys
      const reply = parseArray(await link.run(script, [this.#sequenceKey, log, ends, keep, hot, hand, resets, ...keys], argument))
      link.heardAt = clock.monotonic()
      const middle = (call.since + link.heardAt) / 2
      const [seconds, microseconds, before, ...rest] = reply
      const moment = { time: parseTime(seconds, microseconds), middle }
      if (before === undefined) throw replyError('too short')
      if (this.#sequence.answered(sequence, parseSequence(before))) this.#options.lost()
      const step = this.#last === undefined ? 0 : moment.time - this.#last.time - (moment.middle - this.#last.middle)
      this.#last = moment
      // The nodes' time hides a step; and by what the network delays replies, or by drift, nothing is corrected.
      return { moment, rest, setBack: now === undefined && step < -LEAST_STEP ? -step : 0 }
    } finally {
      const place = this.#pending.indexOf(call)
      if (place >= 0) this.#pending.splice(place, 1)
    }
  }

  /**
   * While one call waits beyond its storeTimeout, no others join it: the server hangs, and they would pile up before it.
   * When it answers at last, all goes on; when it never does, there is a new connection in time.
   */
  #rejectWhenSilent(now: number): void {
    const { timeout, link } = this.#options
    for (const { since } of this.#pending) {
      if (now - since <= timeout) continue
      const long = now - since > 3 * timeout
      if (long) this.#pending = []
      // Where others have answered since, a part of a Cluster hangs: its slots will move, and connections to the others are good.
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
