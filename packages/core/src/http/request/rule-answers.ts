import { isIP } from 'node:net'
import { unknownPlan } from '../../decide/plans.ts'
import { ALL_KEY } from '../../decide/policy.ts'
import type { KeySource } from '../../decide/request-options.ts'
import { isAddressKey } from '../../decide/request-rule.ts'
import { LONGEST_KEY } from '../../keys/key-text.ts'
import { isCost, isLimit } from '../../keys/units.ts'
import { show, WeirError, type WeirErrorCode } from '../../report/errors.ts'
import { ask, isThenable, NoAnswer } from '../../report/user-function.ts'
import { isRaw, own, standIn } from './key-source.ts'
import type { KeyFacts } from './request-facts.ts'
import type { PlanState, Rule } from './rule.ts'

/** Longest text that is made a key; the sender of a longer one is counted by address, or each would cost a hash of all of it. */
const LONGEST_READ = 4096

/**
 * What the functions of rules answered, at once or later, as what is counted by: whatever it was. What can't be used is
 * reported once for each function, and replaced by what lets nobody past.
 */
export class RuleAnswers<Req> {
  readonly #report: (error: WeirError, subject: string) => void

  constructor(report: (error: WeirError, subject: string) => void) {
    this.#report = report
  }

  /** The value of one of a key's sources, or what it has to wait for. */
  source(rule: Rule<Req>, at: number, request: Req, facts: KeyFacts): string | object {
    const source = rule.sources[at] as KeySource<Req>
    if (source === 'route') return facts.route()
    if (source === 'ip') return facts.address()
    if (source === 'all') return ALL_KEY
    // A client without the header is no mistake of the host's, so it is not reported.
    if (typeof source === 'object' && 'header' in source) {
      const value = facts.header(source.header)
      if (source.address === true) return facts.keyOf(value) ?? standIn(facts.address())
      if (rule.addressHeader === source.header) this.#warnAddressHeader(rule, source.header)
      return value && value.length <= LONGEST_READ ? own(value) : standIn(facts.address())
    }
    const answer = ask(isAddressKey(source) ? source.address : source, request)
    return isThenable(answer) ? answer : this.key(rule, at, answer, facts)
  }

  /** @param at which of the rule's sources answered */
  key(rule: Rule<Req>, at: number, answer: unknown, facts: KeyFacts): string {
    const byAddress = isAddressKey(rule.sources[at] as KeySource<Req>)
    if (typeof answer === 'string' && answer !== '') {
      // No mistake of the host's either: a client may have sent it.
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
          ? '; what authentication finds out is there only if it runs before Weir (in Fastify also: hook: "preHandler")'
          : ''
      const allowed = byAddress ? 'an address' : 'a string or a number'
      const problem = problemOf(answer, `It must return ${allowed} for every request${hint}`)
      this.#warn(
        'WEIR_INVALID_KEY',
        `The key function of policy ${show(rule.name)} ${problem}. Such requests are counted by their address.`,
        rule.name,
      )
    }
    return standIn(facts.address())
  }

  match(rule: Rule<Req>, answer: unknown): boolean {
    if (typeof answer === 'boolean') return answer
    if (!rule.matchReported) {
      rule.matchReported = true
      const problem = problemOf(answer, 'It must return true or false')
      this.#warn(
        'WEIR_WARN_CALLBACK_FAILED',
        `The match function of policy ${show(rule.name)} ${problem}. The policy applies to such requests.`,
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
      const problem = answer instanceof NoAnswer ? answer.problem : unknownPlan(group, answer)
      const message = `The plan function of policy ${show(group.policy)} ${problem}. Such requests have the plan ${show(group.smallest)}.`
      this.#warn('WEIR_WARN_CALLBACK_FAILED', message, group.policy)
    }
    return group.smallest
  }

  cost(rule: Rule<Req>, answer: unknown): number {
    if (isCost(answer)) return answer
    if (!rule.costReported) {
      rule.costReported = true
      const problem = problemOf(answer, 'It must return a finite number > 0')
      this.#warn('WEIR_WARN_INVALID_COST', `The cost function of policy ${show(rule.name)} ${problem}. Such requests cost 1.`, rule.name)
    }
    return 1
  }

  /** @returns undefined where the policy's own limit holds */
  limit(rule: Rule<Req>, answer: unknown): number | undefined {
    if (isLimit(answer)) return answer
    if (!rule.limitReported) {
      rule.limitReported = true
      const problem = problemOf(answer, 'It must return 0, Infinity or a number of at least 1')
      this.#warn(
        'WEIR_WARN_INVALID_LIMIT',
        `The limit function of policy ${show(rule.name)} ${problem}. "fallbackLimit" holds then.`,
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
      `Policy ${show(rule.name)} counts by the text of the header ${show(header)}, so each spelling of an address and each address of an IPv6 client has a limit of its own. ${instead}.`,
      rule.name,
    )
  }

  #watchColon(rule: Rule<Req>, answer: string): void {
    rule.colonsWatched--
    if (isIP(answer) !== 6) return
    rule.colonsWatched = 0
    const message = `The key function of policy ${show(rule.name)} returned an IPv6 address. One client has 2^64 of them, each with a limit of its own. Use key: address(yourFunction), with address imported beside throttle.`
    this.#warn('WEIR_WARN_UNBOUNDED_KEY', message, rule.name)
  }

  #warnRaw(rule: Rule<Req>): void {
    rule.rawReported = true
    const message = `The key function of policy ${show(rule.name)} returned what a client can vary at will: a URL with its query, or more than ${LONGEST_KEY} characters. Each spelling has a limit of its own. Use "route", or return what names the client.`
    this.#warn('WEIR_WARN_UNBOUNDED_KEY', message, rule.name)
  }

  #warn(code: WeirErrorCode, message: string, subject: string): void {
    this.#report(new WeirError(code, message), subject)
  }
}

function problemOf(answer: unknown, allowed: string): string {
  return answer instanceof NoAnswer ? answer.problem : `returned ${show(answer)}. ${allowed}`
}
