import { Once } from '../../report/once.ts'
import type { HeartbeatRequest, RulesReport } from '../../store/contract.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'
import { type RuleWatchHost, tellDifferences } from './differing-rules.ts'
import { type ToldRule, textOf, toldRules } from './told-rule.ts'

/** Rules are sent this often, in milliseconds, and as soon as they change. Stores keep them for a minute. */
const EVERY = 15_000

/**
 * Checks whether other processes use a different rule under the same name. Their counts would be added together, or counted apart where
 * one count is meant. The code that compares rules is loaded when the first process reports other rules than this one.
 */
export class RuleWatch {
  readonly #host: RuleWatchHost
  #told = ''
  #toldAt = Number.NEGATIVE_INFINITY
  #own: readonly ToldRule[] = []
  /** The limiters from which the last text was made. An update makes another array. */
  #limiters: readonly Coordinated['limiters'][] = []
  /** Texts that were already compared with the current rules of this process. */
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
