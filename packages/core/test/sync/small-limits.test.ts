import { expect, test } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { scene, warnings } from '../support/nodes.ts'

const small: PolicyOptions<never> = { name: 'login', limit: 5, interval: '1m' }

/** The warnings of the first of several processes. */
async function heard(nodes: number, ...policies: PolicyOptions<never>[]): Promise<string[]> {
  const { world, node, close } = scene()
  const all = Array.from({ length: nodes }, () => node(policies))
  const messages: string[] = []
  for (const one of all) one.on('warning', ({ error }) => one === all[0] && messages.push(`${error.code} ${error.message}`))
  for (const one of all) one.start()
  await world.run(10_000)
  await close()
  return messages
}

test('a limit of less than two units per node is told of once, when the number of nodes is known', async () => {
  const [message, ...more] = await heard(3, small, { ...small, name: 'large', limit: 6 })
  expect(message).toContain('WEIR_WARN_SMALL_LIMIT')
  expect(message).toContain('"login" is 5, less than 2 for each of 3 processes')
  expect(message).toContain('up to 15 through')
  expect(more).toEqual([])
})

test.each<[string, number, Partial<PolicyOptions<never>>]>([
  ['one node', 1, { limit: 1 }],
  ['enough units', 3, { limit: 6 }],
  ['requests that wait for the store', 3, { coordination: 'leased' }],
  ['counts of this process alone', 3, { coordination: 'local' }],
  ['counts that are exchanged at the ends of spans', 3, { coordination: 'periodic' }],
])('nothing is told of %s', async (_, nodes, options) => {
  expect(await heard(nodes, { ...small, ...options })).toEqual([])
})

test('without a listener the process is warned, once for each policy', async () => {
  const told = warnings()
  const { world, node, close } = scene()
  for (const one of [node(small), node({ ...small })]) one.start()
  const third = node(small)
  third.on('warning', () => {})
  third.start()
  await world.run(5_000)
  await close()
  await new Promise((resolve) => setImmediate(resolve))
  expect(told.map((warning) => (warning as { code?: string }).code)).toEqual(['WEIR_WARN_SMALL_LIMIT', 'WEIR_WARN_SMALL_LIMIT'])
})
