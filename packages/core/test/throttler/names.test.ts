import { describe, expect, test } from 'vitest'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { paths } from '../../src/http/index.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import type { Store } from '../../src/throttler/coordinator.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { thrownBy } from '../support/nodes.ts'

const rule: PolicyOptions<never> = { name: 'api', limit: 10, interval: '1m', key: ['ip', 'route'], match: paths('/api/*rest') }

/** Keeps throttlers in memory, because a throttler that was collected claims no names. */
const kept: Throttler[] = []

function make(store: Store, ...policies: PolicyOptions<never>[]): Throttler {
  const throttler = new Throttler({ policies: policies as PolicyOptions[], store })
  kept.push(throttler)
  return throttler
}

/** A new value of a store with this address. */
function at(address: string, kind = 'mine'): Store {
  const { open, coordinate } = memoryStore()
  return { kind, address, open, coordinate }
}

describe('two throttlers with one store', () => {
  const same = (req: { user: string }) => req.user
  test.each<[string, Partial<PolicyOptions<never>>, Partial<PolicyOptions<never>>]>([
    ['interval', { interval: '1m' }, { interval: '2m' }],
    ['limit', { limit: 10 }, { limit: 11 }],
    ['algorithm', {}, { algorithm: slidingWindow() }],
    ['coordination', {}, { coordination: 'periodic' }],
    ['key', { key: 'ip' }, { key: 'all' }],
    ['key', { key: { header: 'a' } }, { key: { header: 'b' } }],
    ['key', { key: (req: { user: string }) => req.user }, { key: (req: { user: string }) => req.user }],
    ['match', { match: paths('/a', '/b') }, { match: paths('/a') }],
    ['match', { match: paths('/a') }, {}],
  ])('a rule with another %s under the same name is an error that names both places', async (option, one, two) => {
    const store = memoryStore()
    const { match: _, ...plain } = rule
    const first = make(store, { ...plain, ...one } as PolicyOptions<never>)
    const error = thrownBy(() => make(store, { ...plain, ...two } as PolicyOptions<never>))
    expect(error.code).toBe('WEIR_DUPLICATE_POLICY')
    expect(error.message).toContain(`"${option}"`)
    expect(error.message.match(/names\.test\.ts:\d+/g)).toHaveLength(2)
    await first.close()
    expect(make(store, { ...plain, ...two } as PolicyOptions<never>).policies).toHaveLength(1)
  })

  test('the same rule is none, whatever else differs', () => {
    const store = memoryStore()
    make(store, { ...rule, key: same as never })
    make(store, { ...rule, key: same as never, cooldown: '5m', match: paths('/api/*rest'), failMode: 'open' })
    make(store, { ...rule, name: 'other', limit: 99 })
    make(store, { ...rule, coordination: 'local', limit: 3 })
  })

  test('a rule that an update brings is looked at as well, and a rejected one changes nothing', () => {
    const store = memoryStore()
    make(store, rule)
    const other = make(store, { ...rule, name: 'other' })
    expect(thrownBy(() => other.update([{ ...rule, interval: '2m' } as PolicyOptions])).code).toBe('WEIR_DUPLICATE_POLICY')
    expect(other.policies[0]?.name).toBe('other')
    other.update([{ ...rule, name: 'third', limit: 5 } as PolicyOptions])
    make(store, { ...rule, name: 'other', limit: 5 })
    expect(thrownBy(() => make(store, { ...rule, name: 'third' })).code).toBe('WEIR_DUPLICATE_POLICY')
  })
})

test('stores of the same kind and address are one, others are not', () => {
  make(at('here'), rule)
  expect(thrownBy(() => make(at('here'), { ...rule, limit: 5 })).code).toBe('WEIR_DUPLICATE_POLICY')
  make(at('there'), { ...rule, limit: 5 })
  make(at('here', 'another kind'), { ...rule, limit: 5 })
  make(memoryStore(), { ...rule, limit: 5 })
  make(memoryStore(), { ...rule, limit: 6 })
})

test('a throttler that cannot be made claims no name', () => {
  const store = memoryStore()
  expect(() => make(store, rule, { ...rule, name: 'bad', limit: -1 })).toThrow()
  make(store, { ...rule, limit: 99 })
})
