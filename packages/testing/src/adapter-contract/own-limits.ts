import assert from 'node:assert/strict'
import { memoryStore, slidingCounter, slidingWindow } from '@weir/core'
import type { AdapterCase } from './context.ts'

/**
 * Every coordination, with an algorithm that it supports beside the default. The long timeouts allow for a slow connection on a
 * busy machine.
 */
const COORDINATIONS = [
  { coordination: 'local', algorithm: slidingWindow() },
  { coordination: 'background', algorithm: slidingWindow() },
  { coordination: 'periodic', algorithm: slidingCounter() },
  { coordination: 'leased', storeTimeout: '30s' },
  { coordination: 'central', storeTimeout: '30s', algorithm: slidingWindow() },
]

/** Limits of a route that replace the limits of the application. */
export const ownLimitCases: readonly AdapterCase[] = [
  ...COORDINATIONS.map(
    ({ coordination, storeTimeout, algorithm }): AdapterCase => ({
      title: `a route has a limit of its own, and all else of the application, with coordination ${coordination}`,
      needs: 'ownLimits',
      async run(context) {
        const rule = { ...context.limit(300), key: 'all', coordination, ...(storeTimeout !== undefined && { storeTimeout }) }
        const interval = 180 * 24 * 3600 * 1000
        const owns = [{ limit: 2 }, { limit: 2, interval }, { limit: 2, algorithm }, { policies: [{ ...rule, key: undefined, limit: 2 }] }]
        for (const own of owns) {
          const client = await context.startWith([{ ...rule, store: memoryStore() }], { own })
          const answers = []
          for (let i = 0; i < 3; i++) answers.push(await client.send('/'))
          assert.deepEqual(
            answers.map(({ status }) => status),
            [200, 200, 429],
          )
          assert.match(String(answers[2]?.headers['ratelimit-policy']), /;q=2;/)
          assert.equal((await client.send('/users/7')).status, 200)
        }
      },
    }),
  ),
  {
    title: 'an application whose route has an empty list of policies does not start',
    needs: 'ownLimits',
    async run(context) {
      const options = { ...context.base, ...context.limit(2) }
      await assert.rejects(context.startWith([options], { own: { policies: [] } }), {
        code: 'WEIR_INVALID_OPTION',
        message: /"policies" is \[\].*(throttle: false|@SkipThrottle)/,
      })
    },
  },
]
