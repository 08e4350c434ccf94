import { Once } from '../../report/once.ts'
import type { HeartbeatRequest, RulesReport } from '../../store/contract.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'
import { type RuleWatchHost, tellDifferences } from './differing-rules.ts'
import { type ToldRule, textOf, toldRules } from './told-rule.ts'

/** Rules are told this often, in milliseconds, and as soon as they change. Stores keep them for a minute. */
const EVERY = 15_000

/**
 * Looks whether other nodes have another rule under the same name: their counts would be one, or two where one is meant. What
 * compares and words it is loaded when some node tells other rules than this one.
 */
export class RuleWatch {
  readonly #host: RuleWatchHost
  #told = ''
  #toldAt = Number.NEGATIVE_INFINITY
  #own: readonly ToldRule[] = []
  /** The limiters from which the last text was made. An update makes another array. */
  #limiters: readonly Coordinated['limiters'][] = []
  /** Texts that were compared with the own rules as they are. */
  #compared = new Once()
  readonly #said = new Once()

  constructor(host: RuleWatchHost) {
    this.#host = host
  }

  /** The part of a heartbeat that describes the rules. `now` is of the monotonic clock. */
  request(throttlers: readonly Coordinated[], now: number): Pick<HeartbeatRequest, 'rules'> {
    const limiters = throttlers.map((throttler) => throttler.limiters)
    const updated = limiters.length !== this.#limiters.length || limiters.some((one, i) => one !== this.#limiters[i])
    if (!updated && now < this.#toldAt + EVERY) return {}
    this.#limiters = limiters
    const own = throttlers.flatMap(toldRules)
    const text = textOf(own)
    if (text === this.#told && now < this.#toldAt + EVERY) return {}
    if (text !== this.#told) this.#compared = new Once()
    this.#told = text
    this.#toldAt = now
    this.#own = own
    return { rules: text }
  }

  heard(reports: readonly RulesReport[]): void {
    const { nodeId } = this.#host
    const news = reports.filter(
      ({ node, rules }) => node !== nodeId && !this.#host.isFollowing(node) && rules !== this.#told && this.#compared.first(rules),
    )
    if (news.length === 0) return
    for (const report of news) tellDifferences(this.#own, report, this.#host, this.#said)
  }
}
