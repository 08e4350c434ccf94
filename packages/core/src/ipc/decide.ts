import { type BuiltInStep, STEPS } from '../algorithms/all.ts'
import type { Account } from '../hub/account.ts'
import { HubDecisions } from '../hub/decider.ts'
import type { Hub } from '../hub/hub.ts'
import type { Decide, DecidedPolicy, Question, Verdict } from '../store/contract.ts'
import type { PackedDecide } from './envelope.ts'

/*
 * Checks children's requests for decisions before other code reads them:
 *
 *     sequence   a whole number
 *     lane       a whole number below MOST_LANES, or nothing
 *     time       within a day of this process's clock
 *     policies   at most MOST_QUESTIONS of [id, step, parameters]: a step that is known here, parameters within its ranges
 *     questions  1 to MOST_QUESTIONS of [policy, key, kind, units, limit, at]; one, unless all are takes
 *
 * One bad part makes the request useless: it is one atomic step.
 */

const MOST_QUESTIONS = 30
const MOST_LANES = 64
const MOST: number = Number.MAX_SAFE_INTEGER
const LONGEST_ID = 512
const LONGEST_KEY = 1_024
const DAY = 86_400_000

/** Policies that children have asked about, so that each has one object. */
const policies = new Map<string, DecidedPolicy>()
const MOST_POLICIES = 10_000

/**
 * Decides about a child's request.
 *
 * @returns undefined when it can't be read, or there is no room for what it needs
 */
export function decideFor(
  hub: Hub,
  node: string,
  packed: unknown,
  account: Account,
  now: number,
): readonly (readonly unknown[])[] | undefined {
  try {
    const request = read(packed as PackedDecide, now)
    const verdicts = request && hub.decisions((clock) => new HubDecisions(clock)).decide(node, request, account)
    return verdicts?.map(packVerdict)
  } catch {
    return undefined
  }
}

function packVerdict({ allowed, remaining, resetAfterMs, retryAfterMs, delayMs: delay }: Verdict): readonly unknown[] {
  return [allowed, finite(remaining), resetAfterMs, finite(retryAfterMs), delay]
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null
}

function read({ sequence, lane, again, of, time, stepped, policies: given, questions }: PackedDecide, now: number): Decide | undefined {
  if (!isWhole(sequence) || !(typeof time === 'number' && Math.abs(time - now) <= DAY)) return undefined
  if (!isList(given) || !isList(questions) || (of !== undefined && !isWhole(of))) return undefined
  if (lane !== undefined && !(isWhole(lane) && lane < MOST_LANES)) return undefined
  const known = given.map(readPolicy)
  const all = questions.map((question) => readQuestion(question, known))
  if (!all.every((question) => question !== undefined) || (all.length > 1 && all.some(({ kind }) => kind !== 'take'))) return undefined
  return {
    sequence,
    time,
    questions: all,
    ...(lane !== undefined && { lane }),
    ...(again === true && { again }),
    ...(stepped === true && { stepped }),
    ...(of !== undefined && { of }),
  }
}

function readPolicy([id, step, parameters]: readonly unknown[]): DecidedPolicy | undefined {
  if (typeof id !== 'string' || id.length > LONGEST_ID || !Array.isArray(parameters) || parameters.length > 5) return undefined
  const [interval, ...more] = parameters as readonly unknown[]
  if (!isNumber(interval, 1, MOST) || !more.every((one) => isNumber(one, -1, MOST))) return undefined
  const builtIn = stepOf(step)
  if (builtIn === undefined) return undefined
  const numbers = parameters as number[]
  const { stateBy } = builtIn
  const name = `${id} ${step} ${(stateBy?.(numbers) ?? numbers).join(' ')}`
  // Where the state depends on some of the parameters only, the others differ from request to request.
  const known = stateBy === undefined ? policies.get(name) : undefined
  if (known !== undefined) return known
  const model = builtIn.by(numbers)
  if (model === undefined) return undefined
  const policy = Object.freeze({ id: name, step: model, parameters: [...numbers] })
  if (stateBy !== undefined) return policy
  if (policies.size >= MOST_POLICIES) policies.clear()
  policies.set(name, policy)
  return policy
}

function stepOf(id: unknown): BuiltInStep | undefined {
  return typeof id === 'string' && Object.hasOwn(STEPS, id) ? STEPS[id as keyof typeof STEPS] : undefined
}

function readQuestion(value: readonly unknown[], known: readonly (DecidedPolicy | undefined)[]): Question | undefined {
  const [place, key, kind, units, limit, at] = value
  const policy = isWhole(place) ? known[place] : undefined
  if (policy === undefined || typeof key !== 'string' || key.length > LONGEST_KEY || !isNumber(units, 0, MOST)) return undefined
  if (kind !== 'take' && kind !== 'add' && kind !== 'give-back' && kind !== 'reset') return undefined
  if (!(limit === null || isNumber(limit, 0, MOST)) || !isNumber(at, 0, MOST)) return undefined
  if (limit !== null && limit > (stepOf(policy.step.id)?.mostLimit ?? MOST)) return undefined
  return { policy, key, kind, units, limit: limit ?? Number.POSITIVE_INFINITY, at }
}

function isList(value: unknown): value is readonly (readonly unknown[])[] {
  return Array.isArray(value) && value.length >= 1 && value.length <= MOST_QUESTIONS && value.every((one) => Array.isArray(one))
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isNumber(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && value >= least && value <= most
}
