import { expect, test } from 'vitest'
import * as yaml from 'yaml'
import type { FollowedRules } from '../../src/inspect/index.ts'
import { type FollowOptions, follow, type RulesSource } from '../../src/rules/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { scene } from '../support/nodes.ts'

const document = (version: number, more: object = {}) =>
  JSON.stringify({ version, policies: [{ name: 'a', limit: 10, interval: '1h', key: 'ip' }], ...more })

/** A source that keeps its texts, newest first, or keeps none. */
function source(texts: string[], history?: RulesSource['history']): RulesSource & { change: (text: string) => void } {
  let tell = () => {}
  return {
    name: 'the test',
    interval: 60_000,
    read: async () => texts[0],
    watch: (changed) => {
      tell = changed
      return () => {}
    },
    ...(history !== undefined && { history }),
    change: (text) => {
      texts.unshift(text)
      tell()
    },
  }
}

async function followed(from: RulesSource, options: FollowOptions = {}) {
  const { node: make, world } = scene()
  const node = make({ name: 'code', limit: 1, interval: '1h', key: 'ip' }, { alone: true })
  node.on('warning', () => {})
  follow(node, from, options)
  await world.settle()
  const rules = adapterOf(node).inspected.followed as FollowedRules
  const versions = async () => {
    const list = rules.versions()
    await world.run(10_000)
    return list
  }
  return { world, rules, versions }
}

test('lists the documents of a source that keeps them, those that never held here too', async () => {
  const texts = [
    document(4, { change: { by: 'carol', why: 'x'.repeat(5_000) } }),
    document(3, { change: { at: '2026-11-23T22:00:00Z', by: 'bob', why: 'incident 42' } }),
    'version: 2\nchange: { by: alice }\n',
    'nonsense {',
    `# ${'long '.repeat(5_000)}\nversion: 1\n`,
  ]
  const asked: number[] = []
  const { versions } = await followed(
    source(texts, async (most) => {
      asked.push(most)
      return texts
    }),
    { yaml },
  )
  expect(await versions()).toMatchObject([
    // This document was rejected because its reason is too long, so it was never in use.
    { version: 4, by: 'carol', why: 'x'.repeat(1_000), since: undefined },
    { version: 3, at: '2026-11-23T22:00:00Z', by: 'bob', why: 'incident 42' },
    { version: 2, at: undefined, by: 'alice' },
    { version: undefined },
    { version: undefined },
  ])
  expect(asked).toEqual([20])
})

test('lists those that this process has seen, where the source keeps none', async () => {
  const one = source([document(1)])
  const { world, versions, rules } = await followed(one)
  const [first] = await versions()
  expect(first).toMatchObject({ version: 1, digest: rules.status.digest, since: expect.any(Number) })
  one.change(document(2, { change: { by: 'bob' } }))
  await world.settle()
  one.change('{')
  await world.settle()
  expect(await versions()).toMatchObject([{ version: 2, by: 'bob' }, { version: 1 }])
  // The source returns to exactly the first document.
  one.change(document(1))
  await world.settle()
  expect((await versions()).map(({ version }) => version)).toEqual([1, 2])
})

test.each([
  ['rejects', () => Promise.reject(new Error('away'))],
  [
    'throws',
    () => {
      throw new Error('away')
    },
  ],
  ['never answers', () => new Promise<never>(() => {})],
])('lists those that it has seen while the source %s', async (_, history) => {
  const { versions } = await followed(source([document(1)], history))
  expect(await versions()).toMatchObject([{ version: 1 }])
})

test('has what holds as it was written, with overrides as they were checked, and rules to come', async () => {
  const overrides = [{ policy: 'a', key: 'k', limit: 3, until: '2030-01-01T00:00:00Z' }]
  const next = { policies: [{ name: 'a', limit: '5' }] }
  const good = { policies: [{ name: 'a', limit: 5, interval: '1h', key: 'ip' }], overrides: [{ policy: 'a', key: 'k', limit: 9 }] }
  const one = source([document(1, { overrides, next: good })])
  const { rules, world } = await followed(one)
  const held = {
    policies: [{ name: 'a', limit: 10, interval: '1h', key: 'ip' }],
    overrides: [{ policy: 'a', key: 'k', limit: 3, until: Date.UTC(2030, 0) }],
    next: { policies: good.policies, overrides: [{ policy: 'a', key: 'k', limit: 9, until: Number.POSITIVE_INFINITY }] },
  }
  expect(rules.held).toEqual(held)
  // The document is rejected, so the rules in use stay.
  one.change(document(2, { next }))
  await world.settle()
  expect([rules.status.rejected?.version, rules.held]).toEqual([2, held])
  one.change(document(3))
  await world.settle()
  expect(rules.held).toMatchObject({ overrides: [], next: undefined })
})
