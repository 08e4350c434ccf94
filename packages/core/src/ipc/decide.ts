import { type BuiltInStep, STEPS } from '../algorithms/all.ts'
import type { Account } from '../hub/account.ts'
import { HubDecisions } from '../hub/decider.ts'
import type { Hub } from '../hub/hub.ts'
import { attempt, list, MOST, mark, number, object, oneOf, optional, orNull, raw, row, text, whole } from '../report/readers.ts'
import type { Decide, DecidedPolicy, Question, Verdict } from '../store/contract.ts'

/**
 * Checks children's requests for decisions before other code reads them:
 *
 *     sequence   a whole number
 *     lane       a whole number below MOST_LANES, or nothing
 *     time       within a day of this process's clock
 *     policies   at most MOST_QUESTIONS of [id, step, parameters]: a step of this version, parameters within its ranges
 *     questions  1 to MOST_QUESTIONS of [policy, key, kind, units, limit, at, reservation?]. Only one, unless all are takes. A
 *                reservation is [id, end, units, due]
 *
 * One invalid part makes the whole request invalid, because it is one atomic step.
 */

const MOST_QUESTIONS = 30
const MOST_LANES = 64
const LONGEST_ID = 512
const LONGEST_KEY = 1_024
const DAY = 86_400_000

/** Policies of children's requests, so that each has one object. */
const policies = new Map<string, DecidedPolicy>()
const MOST_POLICIES = 10_000

/**
 * Decides a child's request.
 *
 * @returns undefined if the request is invalid, or there is no memory left for its keys
 */
export function decideFor(
  hub: Hub,
  node: string,
  packed: unknown,
  account: Account,
  now: number,
): readonly (readonly unknown[])[] | undefined {
  return attempt(() => {
    const request = read(packed, now)
    const verdicts = request && hub.decisions((clock) => new HubDecisions(clock)).decide(node, request, account)
    return verdicts?.map(packVerdict)
  })
}

function packVerdict({ allowed, remaining, resetAfterMs, retryAfterMs, delayMs: delay }: Verdict): readonly unknown[] {
  return [allowed, finite(remaining), resetAfterMs, finite(retryAfterMs), delay]
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

const units = number(0, MOST)
const order = whole<number>(0, MOST)

const readParts = object({
  sequence: order,
  lane: optional(whole<number>(0, MOST_LANES - 1)),
  again: mark,
  of: optional(order),
  time: number(-MOST, MOST),
  stepped: mark,
  policies: list(MOST_QUESTIONS, readPolicy),
  questions: raw,
})

function read(packed: unknown, now: number): Decide | undefined {
  const parts = readParts(packed)
  if (parts === undefined || parts.policies.length === 0 || Math.abs(parts.time - now) > DAY) return undefined
  const { policies: known, ...rest } = parts
  const questions = list(MOST_QUESTIONS, (question) => questionOf(question, known))(parts.questions)
  if (questions === undefined || questions.length === 0 || (questions.length > 1 && questions.some(({ kind }) => kind !== 'take')))
    return undefined
  return { ...rest, questions }
}

const readPolicyFields = row({ id: text(LONGEST_ID), step: text(LONGEST_ID), parameters: list(5, number(-1, MOST)) }, Infinity)

function readPolicy(value: unknown): DecidedPolicy | undefined {
  const { id, step, parameters: numbers = [] } = readPolicyFields(value) ?? {}
  if (numbers[0] === undefined || numbers[0] < 1) return undefined
  const builtIn = stepOf(step)
  if (builtIn === undefined) return undefined
  const { stateBy } = builtIn
  const name = `${id} ${step} ${(stateBy?.(numbers) ?? numbers).join(' ')}`
  // If the state depends on some parameters only, the others differ between requests, so the policy is not kept.
  const known = stateBy === undefined ? policies.get(name) : undefined
  if (known !== undefined) return known
  const model = builtIn.by(numbers)
  if (model === undefined) return undefined
  const policy = Object.freeze({ id: name, step: model, parameters: numbers })
  if (stateBy !== undefined) return policy
  if (policies.size >= MOST_POLICIES) policies.clear()
  policies.set(name, policy)
  return policy
}

function stepOf(id: unknown): BuiltInStep | undefined {
  return typeof id === 'string' && Object.hasOwn(STEPS, id) ? STEPS[id as keyof typeof STEPS] : undefined
}

const readQuestion = row(
  {
    policy: order,
    key: text(LONGEST_KEY),
    kind: oneOf<Question['kind']>('take', 'add', 'give-back', 'use', 'settle', 'reset'),
    units,
    limit: orNull(units, Number.POSITIVE_INFINITY),
    at: units,
    reservation: optional(row({ id: order, end: units, units, due: units })),
  },
  Infinity,
)

function questionOf(value: unknown, known: readonly DecidedPolicy[]): Question | undefined {
  const question = readQuestion(value)
  const policy = question && known[question.policy]
  if (question === undefined || policy === undefined) return undefined
  const { limit } = question
  const isTooMuch = limit !== Number.POSITIVE_INFINITY && limit > (stepOf(policy.step.id)?.mostLimit ?? MOST)
  return isTooMuch ? undefined : { ...question, policy }
}
