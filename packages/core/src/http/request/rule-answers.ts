import { isIP } from 'node:net'
import { costIn, isCosts } from '../../decide/costs.ts'
import { ALL_KEY } from '../../decide/policy.ts'
import type { KeySource } from '../../decide/request-options.ts'
import { isAddressKey } from '../../decide/request-rule.ts'
import { LONGEST_KEY } from '../../keys/key-text.ts'
import { isCost, isLimit } from '../../keys/units.ts'
import { importOf, show, WeirError, type WeirErrorCode } from '../../report/errors.ts'
import { alternatives } from '../../report/show.ts'
import { ask, isThenable, NoAnswer } from '../../report/user-function.ts'
import { isRaw, own, standIn } from './key-source.ts'
import type { KeyFacts } from './request-facts.ts'
import type { PlanState, Rule } from './rule.ts'

/**
 * Longest text that becomes a key. A client with a longer one is counted by address, because each key would cost a hash of the whole text.
 */
const LONGEST_READ = 4096

/**
 * Turns the answers of the rules' functions, immediate or later, into usable values. An unusable answer is reported once per function, and
 * replaced by a value that lets no request bypass the limit.
 */
export class RuleAnswers<Req> {
  readonly #report: (error: WeirError, subject: string) => void
  readonly #names: ReadonlySet<string>

  /** @param names the names of the policies that a cost function may return costs for */
  constructor(report: (error: WeirError, subject: string) => void, names: ReadonlySet<string>) {
    this.#report = report
    this.#names = names
  }

  /** The value of one of a key's sources, or the promise to wait for. */
  source(rule: Rule<Req>, at: number, request: Req, facts: KeyFacts): string | object {
    const source = rule.sources[at] as KeySource<Req>
    if (source === 'route') return facts.route()
    if (source === 'ip') return facts.address()
    if (source === 'all') return ALL_KEY
    // A client without the header is no mistake of the application, so it is not reported.
    if (typeof source === 'object' && 'header' in source) {
      const value = facts.header(source.header)
      if (source.address === true) return facts.keyOf(value) ?? standIn(facts.address())
      if (rule.addressHeader === source.header) this.#warnAddressHeader(rule, source.header)
      return value && value.length <= LONGEST_READ ? own(value) : standIn(facts.address())
    }
    const answer = ask(isAddressKey(source) ? source.address : source, request)
    return isThenable(answer) ? answer : this.key(rule, at, answer, facts)
  }

  /** @param at the index of the rule's source that answered */
  key(rule: Rule<Req>, at: number, answer: unknown, facts: KeyFacts): string {
    const byAddress = isAddressKey(rule.sources[at] as KeySource<Req>)
    if (typeof answer === 'string' && answer !== '') {
      // An invalid address is no mistake of the application either, because a client may have sent it.
      if (byAddress) return facts.keyOf(answer) ?? standIn(facts.address())
      if (!rule.rawReported && isRaw(answer)) this.#warnRaw(rule)
      if (rule.colonsWatched > 0 && answer.includes(':')) this.#watchColon(rule, answer)
      return answer.length <= LONGEST_READ ? own(answer) : standIn(facts.address())
    }
    if (!byAddress && ((typeof answer === 'number' && !Number.isNaN(answer)) || typeof answer === 'bigint')) return own(String(answer))
    if (!rule.keyReported) {
      rule.keyReported = true
      const hint =
        !byAddress && (answer === undefined || answer === null)
          ? ' If the key needs authentication, run that first (Fastify: hook: "preHandler").'
          : ''
      const allowed = byAddress ? 'an address' : 'a string or a number'
      this.#warn(
        'WEIR_INVALID_KEY',
        `The key function of policy ${show(rule.name)} ${problemOf(answer)}, so such requests are counted by address. Return ${allowed}.${hint}`,
        rule.name,
      )
    }
    return standIn(facts.address())
  }

  match(rule: Rule<Req>, answer: unknown): boolean {
    if (typeof answer === 'boolean') return answer
    if (!rule.matchReported) {
      rule.matchReported = true
      this.#warn(
        'WEIR_WARN_CALLBACK_FAILED',
        `The match function of policy ${show(rule.name)} ${problemOf(answer)}, so the policy applies to such requests. Return true or false.`,
        rule.name,
      )
    }
    return true
  }

  plan(state: PlanState, answer: unknown): string {
    const { group } = state
    if (typeof answer === 'string' && group.plans.includes(answer)) return answer
    if (!state.reported) {
      state.reported = true
      const plans = alternatives(group.plans)
      const message = `The plan function of policy ${show(group.policy)} ${problemOf(answer)}, so such requests have the plan ${show(group.smallest)}. Return ${plans}.`
      this.#warn('WEIR_WARN_CALLBACK_FAILED', message, group.policy)
    }
    return group.smallest
  }

  /** @returns undefined if the answer has costs by policy name, and none of this policy */
  cost(rule: Rule<Req>, answer: unknown): number | undefined {
    if (isCost(answer)) return answer
    if (isCosts(answer, this.#names)) return costIn(answer, rule.name)
    if (!rule.costReported) {
      rule.costReported = true
      const message = `The cost function of policy ${show(rule.name)} ${problemOf(answer)}, so such requests cost 1. Return a finite number > 0, or such numbers by policy name.`
      this.#warn('WEIR_WARN_INVALID_COST', message, rule.name)
    }
    return 1
  }

  /** @returns undefined if the policy's own limit applies */
  limit(rule: Rule<Req>, answer: unknown): number | undefined {
    if (isLimit(answer)) return answer
    if (!rule.limitReported) {
      rule.limitReported = true
      this.#warn(
        'WEIR_WARN_INVALID_LIMIT',
        `The limit function of policy ${show(rule.name)} ${problemOf(answer)}, so such requests have the "fallbackLimit". Return 0, Infinity or a number of at least 1.`,
        rule.name,
      )
    }
    return undefined
  }

  #warnAddressHeader(rule: Rule<Req>, header: string): void {
    rule.addressHeader = undefined
    const instead = header.endsWith('forwarded-for')
      ? 'Use key: "ip", and have your framework trust your proxy'
      : `Use key: address(header(${show(header)}))`
    this.#warn(
      'WEIR_WARN_UNBOUNDED_KEY',
      `Policy ${show(rule.name)} counts by the text of the header ${show(header)}, so each spelling of an address and each address of an IPv6 client gets a new limit. ${instead}.`,
      rule.name,
    )
  }

  #watchColon(rule: Rule<Req>, answer: string): void {
    rule.colonsWatched--
    if (isIP(answer) !== 6) return
    rule.colonsWatched = 0
    const message = `The key function of policy ${show(rule.name)} returned an IPv6 address. One client has 2^64 of them, each with a new limit. Use key: address(yourFunction). ${importOf('address')}`
    this.#warn('WEIR_WARN_UNBOUNDED_KEY', message, rule.name)
  }

  #warnRaw(rule: Rule<Req>): void {
    rule.rawReported = true
    const message = `The key function of policy ${show(rule.name)} returned a URL with its query (or over ${LONGEST_KEY} characters). A client can vary it and get a new limit each time. Return a user id, or use key: "route".`
    this.#warn('WEIR_WARN_UNBOUNDED_KEY', message, rule.name)
  }

  #warn(code: WeirErrorCode, message: string, subject: string): void {
    this.#report(new WeirError(code, message), subject)
  }
}

function problemOf(answer: unknown): string {
  return answer instanceof NoAnswer ? answer.problem : `returned ${show(answer)}`
}
