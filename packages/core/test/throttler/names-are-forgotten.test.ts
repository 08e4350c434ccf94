import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { parsePolicies } from '../../src/decide/check-policy.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { namesAt } from '../../src/throttler/names.ts'
import { Throttler } from '../../src/throttler/throttler.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Bytes in use, after finalizers have run. */
async function heap(): Promise<number> {
  collect()
  await new Promise((resolve) => setTimeout(resolve, 10))
  collect()
  return process.memoryUsage().heapUsed
}

const ruleOf = (name: string): PolicyOptions<never>[] => [{ name, limit: 10, interval: '1m' }]

test('stores at ever new addresses leave nothing', async () => {
  const open = (from: number, count: number): void => {
    const { open, coordinate } = memoryStore()
    const rules = ruleOf('api')
    const policies = parsePolicies(rules, true)
    for (let i = from; i < from + count; i++) {
      const owner = {}
      const names = namesAt({ kind: 'mine', address: `server-${i}.example.com:6379`, open, coordinate } as never)
      names.claim(owner, rules, policies)
      names.release(owner)
    }
  }
  open(0, 2_000)
  const before = await heap()
  for (let round = 1; round <= 4; round++) {
    open(round * 2_000, 2_000)
    await heap()
  }
  expect((await heap()) - before).toBeLessThan(1_000_000)
})

test('throttlers at one address know each other as long as one of them is there', async () => {
  const at = () => ({ kind: 'mine', address: 'one place', open: memoryStore().open, coordinate: memoryStore().coordinate })
  const first = new Throttler({ policies: ruleOf('api') as PolicyOptions[], store: at() })
  await heap()
  expect(() => new Throttler({ policies: [{ name: 'api', limit: 11, interval: '1m' }], store: at() })).toThrow('different rules named')
  await first.close()
})

test('names of throttlers that were dropped without being closed are forgotten, and may be given again', async () => {
  const names = namesAt(memoryStore())
  const claim = (from: number, limit: number): void => {
    for (let i = from; i < from + 1_000; i++) {
      const rules: PolicyOptions<never>[] = [{ name: `policy ${i}`, limit, interval: '1m' }]
      names.claim({}, rules, parsePolicies(rules, true))
    }
  }
  claim(0, 10)
  await heap()
  claim(0, 11)
  const before = await heap()
  for (let round = 1; round <= 3; round++) {
    claim(round * 1_000, 10)
    await heap()
  }
  expect((await heap()) - before).toBeLessThan(1_500_000)
})

test('a claim looks at the rules of its own name only', () => {
  let reads = 0
  const counted = <T extends object>(policy: T): T =>
    new Proxy(policy, {
      get(target, name, receiver) {
        reads++
        return Reflect.get(target, name, receiver)
      },
    })
  const names = namesAt(memoryStore())
  const owners: object[] = []
  const claim = (i: number): void => {
    const rules = ruleOf(`policy ${i}`)
    const owner = {}
    owners.push(owner)
    names.claim(owner, rules, parsePolicies(rules, true).map(counted))
  }
  for (let i = 0; i < 100; i++) claim(i)
  const first = reads
  for (let i = 100; i < 900; i++) claim(i)
  expect(reads - first).toBeLessThanOrEqual(8 * first)
  expect(owners).toHaveLength(900)
})
