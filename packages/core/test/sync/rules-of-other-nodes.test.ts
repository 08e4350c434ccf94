import { describe, expect, test } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { header, paths } from '../../src/http/index.ts'
import { type Algorithm, escalating, leakyBucket, slidingWindow, tokenBucket } from '../../src/index.ts'
import type { WeirError } from '../../src/report/errors.ts'
import { Once } from '../../src/report/once.ts'
import { tellDifferences } from '../../src/sync/link/differing-rules.ts'
import type { ToldRule } from '../../src/sync/link/told-rule.ts'
import type { Throttler } from '../../src/throttler/throttler.ts'
import { scene } from '../support/nodes.ts'

const rule: PolicyOptions<never> = { name: 'api', limit: 10, interval: '1m', key: ['ip', header('x-user')], match: paths('/api/*rest') }

/** The warnings and events of a throttler. */
function heardBy(throttler: Throttler) {
  const warnings: WeirError[] = []
  const changes: { policy: string; node: string; changes: string }[] = []
  throttler.on('warning', ({ error }) => warnings.push(error))
  throttler.on('peerRuleDiffers', (event) => changes.push(event))
  return { warnings, changes }
}

/** Two processes with a rule each, some time after the second one has started. */
async function meet(one: PolicyOptions<never>, two: PolicyOptions<never>) {
  const { world, node, close } = scene()
  const nodes = [node(one), node(two)] as const
  const heard = nodes.map(heardBy)
  for (const throttler of nodes) {
    throttler.start()
    await world.run(1_000)
  }
  await world.run(40_000)
  return { world, nodes, heard, close }
}

describe('another rule of the same name at another node', () => {
  test.each<[string, Partial<PolicyOptions<never>>, string]>([
    ['interval', { interval: '2m' }, '"interval" is 60000 here and 120000 there'],
    ['algorithm', { algorithm: slidingWindow() }, '"algorithm" is "fixed-window" here and "sliding-window30" there'],
    ['coordination', { coordination: 'periodic' }, '"coordination" is "background" here and "periodic" there'],
    ['key', { key: ['ip', header('x-customer')] }, '"key" is another one'],
    ['key that is a function', { key: () => 'a' }, '"key" is a function at one of them only'],
    ['match', { match: paths('/api/other') }, '"match" is another one'],
  ])('is one warning at each of them: %s', async (_, other, difference) => {
    const { nodes, heard, close } = await meet(rule, { ...rule, ...other, limit: 20 })
    for (const [at, { warnings, changes }] of heard.entries()) {
      expect(changes).toEqual([])
      expect(warnings.map(({ code }) => code)).toEqual(['WEIR_WARN_RULES_DIFFER'])
      expect(warnings[0]?.message).toContain('different settings for policy "api"')
      expect(warnings[0]?.message).toContain(`Process ${nodes[1 - at]?.nodeId}`)
    }
    expect(heard[0]?.warnings[0]?.message).toContain(difference)
    await close()
  })

  test.each<[string, Partial<PolicyOptions<never>>, string]>([
    ['limit', { limit: 20 }, '"limit" is 10 here and 20 there'],
    ['cooldown', { cooldown: '5m' }, '"cooldown" is 0 here and 300000 there'],
    ['spans', { spans: 12 }, '"spans" is 6 here and 12 there'],
    [
      'how a cooldown grows',
      { cooldown: escalating({ base: '5m', max: '1h' }) },
      '"cooldown" is 0 here and 300000 there; "cooldown.factor" is left out here and 2 there; "cooldown.max" is left out here and 3600000 there; "cooldown.memory" is left out here and 3600000 there',
    ],
  ])('is a rolling change, which is no warning, where only numbers differ: %s', async (_, other, changes) => {
    const { nodes, heard, close } = await meet(rule, { ...rule, ...other })
    expect(heard.map(({ warnings }) => warnings)).toEqual([[], []])
    expect(heard[0]?.changes).toEqual([{ policy: 'api', node: nodes[1].nodeId, changes }])
    expect(heard[1]?.changes).toHaveLength(1)
    await close()
  })

  test.each<[string, readonly Algorithm[], string]>([
    ['burst', [tokenBucket(), tokenBucket({ burst: 20 })], '"burst" is 10 here and 20 there'],
    ['maxDebt', [tokenBucket(), tokenBucket({ maxDebt: 5 })], '"maxDebt" is left out here and 5 there'],
    ['early drop', [tokenBucket({ earlyDrop: true }), tokenBucket()], '"earlyDrop" is 1 here and left out there'],
    ['what waits', [leakyBucket(), leakyBucket({ burst: 3 })], '"burst" is 9 here and 3 there'],
    ['immediate', [leakyBucket({ immediate: 2 }), leakyBucket()], '"immediate" is 2 here and 0 there'],
    ['reopen', [slidingWindow(), slidingWindow({ reopenAt: 0.5 })], '"reopenAt" is 0.1 here and 0.5 there'],
  ])('is a rolling change where only an option of the algorithm differs: %s', async (_, [one, two], changes) => {
    const { nodes, heard, close } = await meet({ ...rule, algorithm: one as Algorithm }, { ...rule, algorithm: two as Algorithm })
    expect(heard.map(({ warnings }) => warnings)).toEqual([[], []])
    expect(heard[0]?.changes).toEqual([{ policy: 'api', node: nodes[1].nodeId, changes }])
    expect(heard[1]?.changes).toHaveLength(1)
    await close()
  })

  test.each<[string, PolicyOptions<never>, PolicyOptions<never>]>([
    ['what a request costs, as a service may charge more than another', rule, { ...rule, cost: 5 }],
    ['a burst by default, and the same number', { ...rule, algorithm: tokenBucket() }, { ...rule, algorithm: tokenBucket({ burst: 10 }) }],
    ['the same', rule, { ...rule, match: paths('/api/*rest'), key: ['ip', header('X-User')] }],
    ['functions, which can not be compared', { ...rule, key: () => 'a' }, { ...rule, key: () => 'b' }],
    ['of another name', rule, { ...rule, name: 'other', limit: 20 }],
    ['of one process alone', rule, { ...rule, coordination: 'local', limit: 20 }],
  ])('is nothing to tell of: %s', async (_, one, two) => {
    const { heard, close } = await meet(one, two)
    expect(heard).toEqual([
      { warnings: [], changes: [] },
      { warnings: [], changes: [] },
    ])
    await close()
  })

  test('an update is noticed when rules travel next', async () => {
    const { world, nodes, heard, close } = await meet(rule, rule)
    nodes[1].update([{ ...rule, interval: '2m' } as PolicyOptions])
    await world.run(15_000)
    expect(heard[0]?.warnings).toHaveLength(1)
    // By then the first process has sent the old rules again, which both had.
    await world.run(15_000)
    expect(heard[1]?.warnings).toHaveLength(1)
    await close()
  })
})

test('rules travel every 15 s, not with each heartbeat', async () => {
  const { world, node, store, close } = scene()
  node(rule).start()
  await world.run(31_500)
  const told = store.requests.filter(({ request }) => request.heartbeat?.rules !== undefined)
  expect(told).toHaveLength(3)
  await close()
})

test('rules are told within bounds, however many there are', async () => {
  const { world, node, store, close } = scene()
  node(Array.from({ length: 300 }, (_, i) => ({ ...rule, name: `policy ${i}` }))).start()
  await world.run(100)
  const text = store.requests.find(({ request }) => request.heartbeat?.rules !== undefined)?.request.heartbeat?.rules as string
  expect(text.length).toBeLessThanOrEqual(8_192)
  expect((JSON.parse(text) as unknown[]).length).toBeGreaterThan(50)
  await close()
})

describe('what the store hands out as another node’s rules', () => {
  const own: ToldRule[] = [['api', 60_000, 'fixed-window', 'background', 'a', 'b', 10, 0, 6, {}]]
  const good: ToldRule = ['api', 1_000, 'x', 'y', 'k', 'm', 20, 5, 7, { burst: 5 }]
  function told(rules: string, node = 'n'): WeirError[] {
    const warnings: WeirError[] = []
    const host = {
      nodeId: 'self',
      isFollowing: () => false,
      emitter: { has: () => true, emit: () => {} },
      warn: (error: WeirError) => warnings.push(error),
    }
    tellDifferences(own, { node, rules }, host, new Once())
    return warnings
  }

  test.each(['', '{', 'null', '7', '{}', '[[]]', '[null]', '["api"]', JSON.stringify([good.slice(1)]), JSON.stringify([[...good, 1]])])(
    'says nothing where it is none: %s',
    (text) => {
      expect(told(text)).toEqual([])
    },
  )

  test('is taken rule by rule, whatever stands beside it', () => {
    for (const [at, part] of [
      [0, 7],
      [1, 'x'.repeat(200)],
      [1, null],
      [1, -1],
      [2, 'x'.repeat(200)],
      [4, null],
      [6, {}],
      [9, null],
      [9, { burst: null }],
      [9, { burst: 'x' }],
      [9, Object.fromEntries(Array.from({ length: 100 }, (_, i) => [i, i]))],
    ] as const) {
      const bad = good.map((own, i) => (i === at ? part : own))
      expect(told(JSON.stringify([bad]))).toEqual([])
      expect(told(JSON.stringify([bad, good]))).toHaveLength(1)
    }
  })

  test('is a difference too where it has the name of what every object has', () => {
    const changes: string[] = []
    const emitter = { has: () => true, emit: (_: string, event: { changes: string }) => changes.push(event.changes) }
    const rules = `[["api",60000,"fixed-window","background","a","b",10,0,6,{"__proto__":1,"constructor":2}]]`
    tellDifferences(own, { node: 'n', rules }, { nodeId: 'self', emitter, warn: () => {} } as never, new Once())
    expect(changes).toEqual(['"__proto__" is left out here and 1 there; "constructor" is left out here and 2 there'])
  })

  test('is safe to print', () => {
    const rules = JSON.stringify([['api', 1_000, '\u001b[31m\nforged', 'y', 'k', 'm', 20, 5, 7, { burst: 5 }]])
    const [warning] = told(rules, `\u001b]0;\u0007${'n'.repeat(10_000)}`)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
    expect(warning?.message).not.toMatch(/[\u0000-\u001f]/)
    expect(warning?.message.length).toBeLessThan(1_000)
  })
})
