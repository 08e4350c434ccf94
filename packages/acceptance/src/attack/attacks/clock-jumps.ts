import { attack } from '../harness/attack.ts'
import { ruleOf } from '../harness/rule.ts'

const LIMIT = 5
const DAY = 86_400_000
/** Steps of the process's own clock in milliseconds. The store's clock does not change. */
const JUMPS = [1_000, -2_000, 60_000, -DAY, 2 * DAY, 3_600_000, -3_600_000, 1e12, -1e12, 0] as const

/** Sets a process's clock wrong. While the store answers, the process must neither allow more requests nor reject them for longer. */
export const clockJumps = attack<{ readonly window: string }>({
  name: 'clock-jumps',
  targets: ['core'],
  stores: ['redis', 'memory', 'none'],
  short: { stores: ['redis'] },

  async victim(given) {
    const { createThrottler, systemClock } = await import('@weir/core')
    const { storeOf } = await import('../harness/serve.ts')
    let jump = 0
    const clock = { ...systemClock, now: () => Date.now() + jump }
    // The interval is so long that none ends during the attack by the real clock.
    const policy = { limit: LIMIT, interval: DAY * 30, ...(await ruleOf(given.args.window)) } as never
    const throttler = createThrottler({ policies: [policy], clock, heartbeat: 100, ...(await storeOf(given)) }).start()
    await new Promise((resolve) => setTimeout(resolve, 300))
    const answer = async (by: number): Promise<unknown> => {
      jump += by
      let allowed = 0
      let odd = ''
      for (let round = 0; round < 3; round++) {
        for (let i = 0; i < 10; i++) {
          const { allowed: passes, remaining, retryAfterMs, resetAfterMs } = throttler.check('k')
          if (passes) allowed++
          if (!(remaining >= 0 && resetAfterMs >= 0 && !(retryAfterMs < 0))) odd = `${remaining} ${resetAfterMs} ${retryAfterMs}`
        }
        await new Promise((resolve) => setTimeout(resolve, 60))
      }
      return { allowed, state: throttler.state, odd }
    }
    return { answer: answer as never }
  },

  async run({ start, result, store }) {
    for (const window of ['fixed', 'sliding']) {
      const victim = await start({ window })
      let allowed = 0
      let odd = ''
      for (const jump of JUMPS) {
        const seen = await victim.ask<{ allowed: number; odd: string }>(jump)
        allowed += seen.allowed
        odd ||= seen.odd
      }
      // Without a shared clock each jump may start one new interval, but no more.
      const most = store === 'redis' ? LIMIT : LIMIT * (1 + JUMPS.length)
      result(
        `${JUMPS.length} jumps of a second to 30 years, ${window}`,
        victim.up && allowed <= most && odd === '',
        `${allowed} of at most ${most} ${odd}`,
      )
      await victim.kill()
    }
  },
})
