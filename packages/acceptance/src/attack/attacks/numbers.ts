import { snapshot } from '@weir/core/inspect'
import { attack } from '../harness/attack.ts'
import { Random } from '../harness/random.ts'
import { KINDS_OF_RULE, type KindOfRule, ruleOf } from '../harness/rule.ts'

const LIMIT = 10
const NUMBERS = [
  0,
  -0,
  -1,
  0.1,
  1,
  3,
  10,
  11,
  1e6,
  2 ** 53,
  2 ** 53 + 2,
  1e300,
  1e308,
  5e-324,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
]

interface Args {
  readonly seed: number
}
interface Found {
  readonly calls: number
  readonly odd: readonly string[]
}

/** Passes odd numbers to `check`, `charge`, `refund`, `peek` and `block`. No result may leave its range. */
export const numbers = attack<Args>({
  name: 'numbers',
  targets: ['core'],
  stores: ['none', 'memory'],

  async victim(given) {
    const { createThrottler } = await import('@weir/core')
    const { storeOf } = await import('../harness/serve.ts')
    const make = async (kind: KindOfRule): Promise<import('@weir/core').Throttler> => {
      const store = await storeOf(given)
      const rule = await ruleOf(kind, 'store' in store)
      return createThrottler({ policies: [{ limit: LIMIT, interval: '1h', ...rule } as never], ...store })
    }

    const named = async (policy: KindOfRule): Promise<string[]> => {
      const odd: string[] = []
      const expect = (what: string, holds: boolean): void => void (holds || odd.push(what))
      const throttler = await make(policy)
      const first = throttler.check('a')
      throttler.charge(first, 1e308)
      throttler.charge(first, 1e308)
      expect('allowed after charge(1e308) twice', !throttler.check('a').allowed)
      expect('a number of the snapshot is not finite', finite(snapshot(throttler, { top: 5 })))
      throttler.refund(first, 1e308)
      expect('a refund of 1e308 gives more than was taken', !throttler.check('a').allowed || first.cost <= 1)
      for (const cost of [2 ** 53 + 2, 1e300, LIMIT + 1]) {
        const decision = throttler.check('b', cost)
        expect(`cost ${cost} is allowed`, !decision.allowed)
        expect(
          `cost ${cost} never fits, but may be tried again after ${decision.retryAfterMs}`,
          !(Number.isFinite(decision.retryAfterMs) && decision.retryAfterMs > 0),
        )
      }
      let allowed = 0
      for (let i = 0; i < 30; i++) if (throttler.check('c', NUMBERS[i % 3]).allowed) allowed++
      expect(`bad costs: ${allowed} allowed`, allowed === LIMIT)
      const decision = throttler.check('d')
      for (let i = 0; i < 50; i++) throttler.refund(decision)
      for (const units of NUMBERS) throttler.refund(decision, units)
      allowed = 0
      for (let i = 0; i < 30; i++) if (throttler.check('d').allowed) allowed++
      expect(`after a refund fifty times: ${allowed} allowed`, allowed <= LIMIT)
      await throttler.close()
      return odd
    }

    const random = async (policy: KindOfRule): Promise<Found> => {
      const rule = await ruleOf(policy, 'store' in (await storeOf(given)))
      const odd = new Set<string>()
      const dice = new Random(given.args.seed)
      let calls = 0
      for (let run = 0; run < 12; run++) {
        const throttler = await make(policy)
        let counted = 0
        let last = throttler.check('k')
        if (last.allowed) counted += last.cost
        const log: string[] = []
        for (let step = 0; step < 60; step++, calls++) {
          const number = dice.pick(NUMBERS)
          const what = dice.pick(['check', 'check', 'check', 'charge', 'refund', 'peek', 'update', 'block', 'unblock'])
          log.push(`${what}(${number})`)
          try {
            if (what === 'check') {
              last = throttler.check('k', number)
              // The count never exceeds the limit because of a decision. Charges may exceed it.
              if (last.allowed) {
                if (counted + last.cost > LIMIT * (1 + 1e-9)) odd.add(`${counted} + ${last.cost} allowed: ${log.join(' ')}`)
                counted += last.cost
              }
            } else if (what === 'charge') {
              throttler.charge(last, number)
              if (last.allowed && number > 0 && Number.isFinite(number)) counted += number
            } else if (what === 'refund') {
              throttler.refund(last, number)
              counted = 0
            } else if (what === 'peek') throttler.peek('k', number)
            else if (what === 'update') throttler.update([{ limit: LIMIT, interval: '1h', ...rule } as never])
            else if (what === 'block') throttler.block('k', Math.min(number, 50) as never)
            else throttler.unblock('k')
          } catch (error) {
            if (!String((error as { code?: string }).code).startsWith('WEIR_')) odd.add(`${error}: ${log.join(' ')}`)
          }
          const { remaining, resetAfterMs, retryAfterMs } = throttler.peek('k')
          if (!(remaining >= 0 && remaining <= LIMIT && resetAfterMs >= 0 && (retryAfterMs === undefined || retryAfterMs >= 0)))
            odd.add(`remaining ${remaining}, reset ${resetAfterMs}, retry ${retryAfterMs}: ${log.join(' ')}`)
        }
        await throttler.close()
      }
      return { calls, odd: [...odd].slice(0, 3) }
    }
    const answer = async ({ how, policy }: { how: 'named' | 'random'; policy: KindOfRule }): Promise<Found> =>
      how === 'named' ? { calls: 1, odd: await named(policy) } : random(policy)
    return { answer: answer as never }
  },

  async run({ start, result, random }) {
    const victim = await start({ seed: random.below(1e9) })
    for (const policy of KINDS_OF_RULE) {
      for (const how of ['named', 'random'] as const) {
        const { calls, odd } = await victim.ask<Found>({ how, policy })
        const tried = `${how === 'named' ? 'named numbers' : `${calls} calls`} ${policy}`
        if (odd.length === 0) result(tried, true)
        for (const one of odd) result(tried, false, one)
      }
    }
  },
})

/** Whether all numbers in a value are finite. */
function finite(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value !== 'object' || value === null || Object.values(value).every(finite)
}
