import { snapshot } from '@weir/core/inspect'
import { attack } from '../harness/attack.ts'
import { ruleOf } from '../harness/rule.ts'

/** Sends many new keys. They must neither remove a blocked key, nor reset its count, nor grow the table. */
export const keyFlood = attack<{ readonly overflow: string; readonly window: string }>({
  name: 'key-flood',
  targets: ['core'],
  stores: ['none', 'memory', 'redis'],

  short: { stores: ['memory'] },

  async victim(given) {
    const { createThrottler } = await import('@weir/core')
    const { storeOf } = await import('../harness/serve.ts')
    const { overflow, window } = given.args
    const policy = { limit: 3, interval: '1h', cooldown: '1h', ...(await ruleOf(window)) }
    const throttler = createThrottler({
      policies: [policy as never],
      maxKeys: 1_000,
      overflow: overflow as never,
      ...(await storeOf(given)),
    })
    const answer = (): unknown => {
      for (let i = 0; i < 4; i++) throttler.check('greedy')
      throttler.block('banned', '1h')
      for (let i = 0; i < 50_000; i++) throttler.check(`k${i}`)
      const passed = ['greedy', 'banned'].filter((key) => throttler.check(key).allowed)
      return { passed, keys: snapshot(throttler).policies.reduce((sum, { keys }) => sum + keys, 0) }
    }
    return { answer }
  },

  async run({ start, result }) {
    for (const window of ['fixed', 'sliding']) {
      for (const overflow of ['shared', 'allow', 'reject']) {
        const victim = await start({ overflow, window })
        const { passed, keys } = await victim.ask<{ passed: string[]; keys: number }>('flood')
        result(`50,000 keys beside a blocked one, ${window}, ${overflow}`, passed.length === 0 && keys <= 1_001, `${passed} ${keys} keys`)
        await victim.kill()
      }
    }
  },
})
