import { bounded } from '../../keys/key-text.ts'
import { ask, isThenable, type Settled, settle } from '../../report/user-function.ts'
import { part } from './key-source.ts'
import { COST, KEY, type LaterContext, LIMIT, MATCH, type PartOfKey, PLAN, type Reading, type Stage } from './later.ts'
import type { PlanState, Rule } from './rule.ts'

/**
 * Reads the rest of a request, after one of its functions did not answer at once. Each function is called once, and all policies are read
 * at the same time, so that they wait together.
 *
 * @param reading the known values, which it completes
 * @param candidates the policies that may apply and are not read yet
 * @param stage the function of the first candidate that has not answered
 * @param waiting the pending answer of that function
 * @returns undefined if no policy applies
 */
export async function readLater<Req>(
  context: LaterContext<Req>,
  reading: Reading,
  candidates: readonly number[],
  stage: Stage,
  waiting: object,
): Promise<Reading | undefined> {
  const plans = new Map<PlanState, Promise<string>>()
  const planOf = (state: PlanState, answer?: object): Promise<string> => {
    let plan = plans.get(state)
    if (plan === undefined) plans.set(state, (plan = readPlan(context, state, answer)))
    return plan
  }
  const found = await Promise.all(
    candidates.map(async (place, i) => {
      const rule = context.rules[place] as Rule<Req>
      const from = i === 0 ? stage : PLAN
      const answer = i === 0 ? waiting : undefined
      if (rule.plans !== undefined && from === PLAN && (await planOf(rule.plans, answer)) !== rule.plan) return undefined
      if (rule.when !== undefined && from <= MATCH) {
        const { value } = await answerOf(context, rule.when, from === MATCH ? answer : undefined)
        if (!context.answers.match(rule, value)) return undefined
      }
      const reads = from < COST ? readKey(context, rule, from === KEY ? (answer as PartOfKey) : undefined) : (reading.keys[place] as string)
      const asked = typeof rule.cost === 'function' && from <= COST ? rule.cost : undefined
      const costs = asked === undefined ? undefined : answerOf(context, asked, from === COST ? answer : undefined)
      const key = await reads
      const limit = await readLimit(context, rule, key, from === LIMIT ? answer : undefined)
      if (costs === undefined) return { place, key, limit }
      const cost = context.answers.cost(rule, (await costs).value)
      return cost === undefined ? undefined : { place, key, limit, cost }
    }),
  )
  for (const one of found) {
    if (one === undefined) continue
    reading.applying.push(one.place)
    reading.keys[one.place] = one.key
    if (one.cost !== undefined) reading.costs[one.place] = one.cost
    if (reading.limits !== undefined) reading.limits[one.place] = one.limit
  }
  return reading.applying.length === 0 ? undefined : reading
}

/** @param answer the pending answer, if the function was already called */
function answerOf<Req>(context: LaterContext<Req>, question: (request: Req) => unknown, answer?: object): Settled | Promise<Settled> {
  const value = answer ?? ask(question, context.request)
  return isThenable(value) ? settle(value, context.patience) : { value }
}

async function readPlan<Req>(context: LaterContext<Req>, state: PlanState, answer?: object): Promise<string> {
  const known = answer === undefined ? context.plans.get(state) : undefined
  if (known !== undefined) return known
  const { value } = await answerOf(context, state.group.of as (request: Req) => unknown, answer)
  return context.answers.plan(state, value)
}

/** The limit of a key. Undefined if the policy's own limit applies. */
async function readLimit<Req>(context: LaterContext<Req>, rule: Rule<Req>, key: string, answer?: object): Promise<number | undefined> {
  const { limit: question, laterLimits } = rule
  if (question === undefined || laterLimits === undefined) return undefined
  const { clock } = context.patience
  const known = answer === undefined ? laterLimits.find(key, clock.monotonic()) : { answer }
  if (known !== undefined && (known.answer === undefined || typeof known.answer === 'number')) return known.answer
  const waiting = known?.answer ?? ask(question, context.request)
  if (!isThenable(waiting)) return context.answers.limit(rule, waiting)
  if (known === undefined) laterLimits.wait(key, waiting)
  const limit = context.answers.limit(rule, (await settle(waiting, context.patience)).value)
  laterLimits.keep(key, limit, clock.monotonic())
  return limit
}

async function readKey<Req>(context: LaterContext<Req>, rule: Rule<Req>, from?: PartOfKey): Promise<string> {
  const { answers, request, facts, patience } = context
  const first = from?.at ?? 0
  const waiting = rule.sources.slice(first).map((_, i) => {
    const value = i === 0 && from !== undefined ? from.answer : answers.source(rule, first + i, request, facts)
    return typeof value === 'string' ? value : settle(value, patience)
  })
  const values: string[] = []
  for (const [i, one] of waiting.entries()) {
    values.push(typeof one === 'string' ? one : answers.key(rule, first + i, (await one).value, facts))
  }
  return rule.sources.length === 1 ? (values[0] as string) : bounded(`${from?.before ?? ''}${values.map(part).join('|')}`)
}
