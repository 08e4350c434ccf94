import { expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingLog } from '../../src/algorithms/sliding-log/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { ManualTime } from '../http/manual-time.ts'
import { offer, scene } from '../support/nodes.ts'

const RULE: PolicyOptions = { name: 'user', limit: 3, interval: '1m', cooldown: '10m' }

function started() {
  const clock = new ManualTime(600_000_000)
  const throttler = createThrottler({ policies: [{ ...RULE, coordination: 'local' }], clock })
  const update = (more: object) => throttler.update([{ ...RULE, coordination: 'local', ...more }])
  return { clock, throttler, update }
}

test.each<[what: string, more: object]>([
  ['interval', { interval: '2m' }],
  ['algorithm', { algorithm: slidingLog() }],
])('blocks stay over another %s, with their ends and causes; counts do not', (_, more) => {
  const { clock, throttler, update } = started()
  const ended: string[] = []
  throttler.on('unblocked', ({ key, cause }) => ended.push(`${key} ${cause}`))
  throttler.block('by hand', '1h')
  for (let i = 0; i < 4; i++) throttler.check('over')
  throttler.check('counted')
  clock.advance(1000)
  update(more)
  expect(throttler.check('by hand')).toMatchObject({ reason: 'blocked', retryAfterMs: 3_599_000 })
  expect(throttler.check('over')).toMatchObject({ reason: 'cooldown', retryAfterMs: 599_000 })
  expect(throttler.peek('counted').remaining).toBe(3)
  clock.advance(599_000)
  expect(throttler.check('over').allowed).toBe(true)
  throttler.unblock('by hand')
  expect(throttler.check('by hand').allowed).toBe(true)
  expect(ended).toEqual(['over expired', 'by hand manual'])
  // The earlier rule comes back, whose limiter still exists. The lifted block must not come back with it.
  update({})
  expect(throttler.check('by hand').allowed).toBe(true)
})

test('a block that was lifted or has ended does not come back, a longer one is kept', () => {
  const { clock, throttler, update } = started()
  throttler.block('a', '1m')
  throttler.block('b', '1m')
  update({ interval: '2m' })
  throttler.block('b', '1h')
  clock.advance(60_000)
  update({})
  expect([throttler.check('a').allowed, throttler.check('b').reason]).toEqual([true, 'blocked'])
  expect(throttler.peek('b').retryAfterMs).toBe(3_540_000)
})

test('with a store too, and another coordination; a node that starts later hears of a block by hand', async () => {
  const { world, node } = scene()
  const rule: PolicyOptions = { name: 'user', limit: 30, interval: '1m' }
  const one = node(rule)
  one.start()
  await world.run(500)
  one.block('mallory', '1h')
  offer(one, 'ann', 5)
  await world.run(500)
  one.update([{ ...rule, interval: '2m', algorithm: fixedWindow(), coordination: 'periodic' }])
  expect(one.check('mallory').reason).toBe('blocked')
  expect(one.peek('ann').remaining).toBe(30)
  await world.run(3_000)
  const later = node({ ...rule, interval: '2m', coordination: 'periodic' })
  later.start()
  await world.run(3_000)
  expect(later.check('mallory').reason).toBe('blocked')
})

const called = ({ coordination, algorithm = fixedWindow() }: Partial<PolicyOptions>) => `${coordination} ${algorithm.name}`
const CHANGES: readonly (readonly [before: Partial<PolicyOptions>, after: Partial<PolicyOptions>])[] = [
  [{ coordination: 'background' }, { coordination: 'central' }],
  [{ coordination: 'central' }, { coordination: 'background' }],
  [{ coordination: 'central' }, { coordination: 'local' }],
  [{ coordination: 'central' }, { coordination: 'leased' }],
  [{ coordination: 'leased' }, { coordination: 'central' }],
  [{ coordination: 'central' }, { coordination: 'central', algorithm: slidingLog() }],
  [
    { coordination: 'central', algorithm: slidingLog() },
    { coordination: 'background', algorithm: slidingWindow() },
  ],
]

test.each(CHANGES.map(([before, after]) => [called(before), called(after), before, after] as const))(
  'from %s to %s counts begin anew, and blocks stay',
  async (_from, _to, before, after) => {
    const { world, node, close } = scene()
    const rule: PolicyOptions = { name: 'user', limit: 30, interval: '1m' }
    const one = node({ ...rule, ...before })
    one.start()
    await world.run(500)
    const asked = async (key: string) => {
      const decision = one.checkAsync(key)
      await world.run(100)
      return await decision
    }
    one.block('mallory', '1h')
    for (let i = 0; i < 5; i++) expect((await asked('ann')).allowed).toBe(true)
    one.update([{ ...rule, ...after }])
    await world.run(500)
    expect((await asked('mallory')).reason).toBe('blocked')
    // The whole limit is allowed, and no more.
    for (let i = 0; i < 30; i++) expect((await asked('ann')).allowed).toBe(true)
    expect((await asked('ann')).allowed).toBe(false)
    await close()
  },
)
