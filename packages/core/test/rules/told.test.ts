import { describe, expect, test } from 'vitest'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { LABEL, statusOf } from '../../src/inspect/node-status.ts'
import { formatStatus, parseStatus } from '../../src/inspect/status-text.ts'
import { follow } from '../../src/rules/index.ts'
import { scene } from '../support/nodes.ts'

const textOf = (version: number, limit: number) => JSON.stringify({ version, policies: [{ name: 'a', limit, interval: '1m', key: 'ip' }] })

test('what a node follows and has rejected is told to the others', async () => {
  const { node: make, world, close } = scene()
  const texts = [textOf(7, 10), textOf(6, 10)]
  const nodes = texts.map((_, i) => {
    const node = make({ name: 'a', limit: 10, interval: '1m', key: 'ip' })
    follow(node, { name: `source ${i}`, interval: 1_000, read: async () => texts[i] as string })
    return node.start()
  })
  const other = make({ name: 'a', limit: 10, interval: '1m', key: 'ip' }).start()
  await world.run(2_000)
  texts[0] = textOf(8, -1)
  for (let second = 0; second < 40; second++) {
    cluster(nodes[0] as (typeof nodes)[0])
    cluster(other)
    await world.run(1_000)
  }
  expect(snapshot(nodes[0] as (typeof nodes)[0]).rules).toMatchObject({ version: 7, from: 'source' })
  const seen = new Map(cluster(other).map(({ node, rules }) => [node, rules]))
  expect(seen.get(other.nodeId)).toBe(undefined)
  expect(seen.get((nodes[1] as typeof other).nodeId)).toMatchObject({ version: 6 })
  expect(seen.get((nodes[0] as typeof other).nodeId)).toMatchObject({
    version: 7,
    rejected: { version: 8, problem: expect.stringContaining('policies[0].limit (line 1') },
  })
  await close()
})

describe('what others say of their rules', () => {
  const node = scene().node({ name: 'a', limit: 1, interval: '1m', key: 'ip' }, { alone: true })
  const told = (rules: unknown) => parseStatus(formatStatus({ ...statusOf(snapshot(node), LABEL, 0), rules: rules as never }))

  test('is taken where it is what it should be', () => {
    expect(told(undefined)?.rules).toBe(undefined)
    expect(told({ version: 3, digest: 'ab', from: 'file', rejected: { version: 4, problem: 'x' }, away: 'y' })?.rules).toMatchObject({
      version: 3,
    })
    expect(told({})?.rules).toEqual({})
  })

  test.each([
    ['a text', 'seven'],
    ['a version that is none', { version: '7' }],
    ['a problem that is none', { rejected: { problem: { toString: 1 } } }],
    ['a problem that is too long', { rejected: { problem: 'x'.repeat(301) } }],
    ['a reason that is none', { away: 5 }],
    ['a list', { rejected: [] }],
  ])('is not where it is %s', (_, rules) => {
    expect(told(rules)).toBe(undefined)
  })
})

test('whom rules to come would reject is told to the others, by policy and key', async () => {
  const { node: make, world, close } = scene()
  const next = { policies: [{ name: 'a', limit: 2, interval: '1m', key: 'ip' }] }
  const text = JSON.stringify({ version: 1, policies: [{ name: 'a', limit: 10, interval: '1m', key: 'ip' }], next })
  const [node, other] = [0, 1].map(() => {
    const one = make({ name: 'a', limit: 10, interval: '1m', key: 'ip' })
    follow(one, { name: 'source', interval: 60_000, read: async () => text })
    return one.start()
  }) as [ReturnType<typeof make>, ReturnType<typeof make>]
  await world.run(2_000)
  for (let i = 0; i < 7; i++) node.check('k')
  for (let i = 0; i < 3; i++) node.check('l')
  node.check('m')
  for (let second = 0; second < 10; second++) {
    cluster(other)
    await world.run(1_000)
  }
  const told = cluster(other).find((one) => one.node === node.nodeId)
  expect(told?.wouldReject).toEqual([
    { policy: 'next:a', key: 'k', rejected: 5 },
    { policy: 'next:a', key: 'l', rejected: 1 },
  ])
  await close()
})

test.each([[undefined], ['all'], [[{ policy: 'a', key: 'k', rejected: '7' }]], [[{ policy: 'a', rejected: 7 }]], [[null]]])(
  'a node that says %j of them is not believed',
  (wouldReject) => {
    const node = scene().node({ name: 'a', limit: 1, interval: '1m', key: 'ip' }, { alone: true })
    expect(parseStatus(formatStatus(statusOf(snapshot(node), LABEL, 0)))).toBeDefined()
    const status = JSON.stringify({ ...statusOf(snapshot(node), LABEL, 0), wouldReject })
    expect(parseStatus(status)).toBe(undefined)
  },
)
