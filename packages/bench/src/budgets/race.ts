import { setTimeout as sleep } from 'node:timers/promises'
import { createThrottler } from '@weir/core'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'

/** Calls that begin at the same time. Each reserves `most` tokens, or uses `used` of them. */
export interface Race {
  readonly limit: number
  readonly calls: readonly { readonly most: number; readonly used: number }[]
}

/** Tokens that the allowed calls really used, and the calls. */
export interface RaceResult {
  readonly allowed: number
  readonly used: number
}

type Call = Race['calls'][number]

/** One way to limit tokens. Returns whether the call was made. */
type Way = (limit: number) => (call: Call) => Promise<boolean>

const MINUTE = 60

/** The call to the provider. */
const provider = () => sleep(5)

/** The ways, by name. */
export const WAYS: Readonly<Record<string, Way>> = {
  'Weir, reserve and settle': (limit) => {
    const throttler = createThrottler({ policies: [{ name: 'tokens', limit, interval: '1m', coordination: 'local' }] })
    return async ({ most, used }) => {
      const call = await throttler.reserveAsync('tenant', { cost: { tokens: most } })
      if (!call.allowed) return false
      await provider()
      call.settle({ tokens: used })
      return true
    }
  },
  'Weir, peek and charge': (limit) => {
    const throttler = createThrottler({ policies: [{ name: 'tokens', limit, interval: '1m', coordination: 'local' }] })
    return async ({ used }) => {
      if (!throttler.peek('tenant').allowed) return false
      await provider()
      throttler.charge('tenant', { cost: { tokens: used } })
      return true
    }
  },
  'rate-limiter-flexible, get and penalty': (limit) => {
    const limiter = new RateLimiterMemory({ points: limit, duration: MINUTE })
    return async ({ used }) => {
      const state = await limiter.get('tenant')
      if (state !== null && state.consumedPoints >= limit) return false
      await provider()
      await limiter.penalty('tenant', used)
      return true
    }
  },
  'rate-limiter-flexible, consume and reward': (limit) => {
    const limiter = new RateLimiterMemory({ points: limit, duration: MINUTE })
    return async ({ most, used }) => {
      try {
        await limiter.consume('tenant', most)
      } catch (error) {
        if (error instanceof RateLimiterRes) return false
        throw error
      }
      await provider()
      await limiter.reward('tenant', most - used)
      return true
    }
  },
}

/** Begins all calls at once, and repeats the rejected ones once when the others have ended. */
export async function race(way: Way, { limit, calls }: Race): Promise<{ readonly first: RaceResult; readonly all: RaceResult }> {
  const attempt = way(limit)
  const made = await Promise.all(calls.map(attempt))
  const again = await Promise.all(calls.filter((_, place) => !made[place]).map(async (call) => ({ call, made: await attempt(call) })))
  const first = calls.filter((_, place) => made[place])
  return { first: sumOf(first), all: sumOf([...first, ...again.flatMap(({ call, made }) => (made ? [call] : []))]) }
}

function sumOf(calls: readonly Call[]): RaceResult {
  return { allowed: calls.length, used: calls.reduce((sum, { used }) => sum + used, 0) }
}
