import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '@weir/tooling/bundle'
import { mustRun } from '@weir/tooling/run'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { slidingWindow } from '../../src/index.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { coordinate } from '../../src/sync/coordinator.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import type { Store } from '../../src/throttler/coordinator.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { offer, thrownBy } from '../support/nodes.ts'
import { TestStore } from '../support/stores.ts'
import { World } from '../support/world.ts'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))

const REPLACED = { code: 'none', warnings: 1 }
const REJECTED = { code: 'WEIR_DUPLICATE_POLICY', warnings: 0 }

test('Node.js evaluates a module again: what its lines make replaces what they made; in production it is an error', async () => {
  const built = await bundlePrograms(PACKAGE, ['test/throttler/fixtures/made-again.ts'])
  onTestFinished(() => rmSync(built, { recursive: true, force: true }))
  const { development, production } = JSON.parse(await mustRun(process.execPath, ['--enable-source-maps', join(built, 'made-again.mjs')]))
  expect(development).toEqual({
    'import with another query': { ...REPLACED, limits: [10, 10] },
    'import of an edited limit': { ...REPLACED, limits: [20, 20] },
    'import of a line that moved': { ...REPLACED, limits: [20, 20] },
    'require without its cache': { ...REPLACED, limits: [10, 10] },
    'require of an edited limit': { ...REPLACED, limits: [20, 20] },
    'require of a line that moved': { ...REPLACED, limits: [20, 20] },
    'two bundles with source maps': { ...REPLACED, limits: [10, 10] },
    'two bundles with source maps that are not applied': { ...REPLACED, limits: [10, 10] },
    // Without source maps, two files with two lines look like two rules.
    'two bundles without source maps': { ...REJECTED, limits: [10] },
    'two lines of one module': { ...REJECTED, limits: [10] },
    'two lines of one module, one after the other': { ...REJECTED, limits: [10] },
    'calls of one helper': { ...REJECTED, limits: [10] },
  })
  expect(production).toEqual(Object.fromEntries(Object.keys(development).map((scene) => [scene, { ...REJECTED, limits: [10] }])))
}, 60_000)

test('a test runner evaluates a module again', async () => {
  const given = globalThis as { reloaded?: unknown }
  onTestFinished(() => {
    delete given.reloaded
  })
  const store = memoryStore()
  const throttlers: Throttler[] = []
  for (const limit of [10, 10, 30]) {
    given.reloaded = { store, limit }
    vi.resetModules()
    throttlers.push((await import('./fixtures/reloaded-limits.ts')).throttler)
  }
  expect(throttlers.map(({ policies }) => policies[0]?.limit)).toEqual([30, 30, 30])
})

let shops = 0

/** A process in which one line creates throttlers, with one value of the store for all, or a value for each. */
function shop(values: 'one value' | 'a value each') {
  const world = new World()
  const hub = new TestStore(world)
  const clock = world.clock({})
  const address = `made again ${++shops}`
  let open = 0
  const newValue = (): Store => ({
    kind: 'counted',
    address,
    coordinate,
    open(node) {
      open++
      const connection = hub.open(node)
      const close = (): Promise<void> => {
        open--
        return connection.close()
      }
      return { sync: (request) => connection.sync(request), close }
    },
  })
  const value = newValue()
  const warnings: string[] = []
  const make = async (policies: readonly Partial<PolicyOptions>[], passing = 100): Promise<Throttler> => {
    const rules = policies.map((policy) => ({ name: 'api', limit: 10, interval: 10_000, ...policy }))
    const store = values === 'one value' ? value : newValue()
    const throttler = new Throttler({ policies: rules as PolicyOptions[], store, clock })
    throttler.on('warning', ({ error }) => warnings.push(error.code))
    throttler.start()
    if (passing > 0) await world.run(passing)
    return throttler
  }
  const close = async (...throttlers: Throttler[]): Promise<void> => {
    for (const throttler of throttlers) {
      const closing = throttler.close()
      await world.run(1_500)
      await closing
    }
  }
  return { world, make, close, warnings, open: () => open }
}

describe.each(['one value', 'a value each'] as const)('at a store of %s', (values) => {
  test('the older throttler follows the new rule, with its counts, and both count together', async () => {
    const { world, make, close, warnings } = shop(values)
    const older = await make([{ key: () => 'a' }, { name: 'other', limit: 3 }])
    expect(offer(older, 'k', 4)).toBe(3)
    await world.run(3_000)
    const key = (): string => 'b'
    const newer = await make([{ limit: 8, key }])
    expect(older.policies.map(({ name, limit }) => [name, limit])).toEqual([
      ['api', 8],
      ['other', 3],
    ])
    expect(adapterOf(older).rules[0]?.key).toBe(key)
    older.update([adapterOf(older).rules[0] as PolicyOptions])
    expect(offer(older, 'k', 2)).toBe(2)
    await world.run(3_000)
    expect(offer(newer, 'k', 20)).toBe(3)
    expect(warnings).toEqual(['WEIR_WARN_POLICY_REPLACED'])
    await close(older, newer)
  })

  test.each<[option: string, Partial<PolicyOptions>, Partial<PolicyOptions>]>([
    ['limit', {}, { limit: 11 }],
    ['interval', {}, { interval: 20_000 }],
    ['algorithm', {}, { algorithm: slidingWindow() }],
    ['coordination', {}, { coordination: 'leased' }],
    ['key', { key: () => 'a' }, { key: () => 'a' }],
    ['match', { match: () => true }, { match: () => true }],
    ['limit function', { limit: () => 15, fallbackLimit: 15 }, { limit: () => 16, fallbackLimit: 15 }],
  ])('an edited %s replaces that of all earlier throttlers, with one warning', async (_option, before, after) => {
    const { world, make, close, warnings } = shop(values)
    const throttlers: Throttler[] = []
    for (const policy of [before, after, before]) throttlers.push(await make([policy]))
    const last = throttlers[2] as Throttler
    for (const { policies, rules } of throttlers.map((one) => adapterOf(one))) {
      expect(policies).toEqual(last.policies)
      expect([rules[0]?.limit, rules[0]?.key, rules[0]?.match]).toEqual([
        adapterOf(last).rules[0]?.limit,
        adapterOf(last).rules[0]?.key,
        adapterOf(last).rules[0]?.match,
      ])
    }
    await world.run(2_000)
    expect(warnings).toEqual(['WEIR_WARN_POLICY_REPLACED'])
    await close(...throttlers)
  })

  test('any number of times leaves ten earlier throttlers that run', async () => {
    const { world, make, close, warnings, open } = shop(values)
    const throttlers: Throttler[] = []
    for (let i = 0; i < 60; i++) {
      throttlers.push(await make([{ limit: 1_000 + i }], 0))
      if (i % 20 === 19) await world.run(2_000)
    }
    const running = throttlers.filter(({ state }) => state !== 'closed')
    expect(running).toEqual(throttlers.slice(-11))
    expect(running.map(({ policies }) => policies[0]?.limit)).toEqual(Array(11).fill(1_059))
    expect(open()).toBe(11)
    expect(warnings).toEqual(['WEIR_WARN_POLICY_REPLACED'])
    expect(snapshot(running[10] as Throttler).nodes).toBe(11)
    await close(...running)
    expect(open()).toBe(0)
  })
})

test('the warning says which line, what has changed and what to do; in production both places are in the error', async () => {
  const store = memoryStore()
  const make = (limit: number, warned: (text: string) => void): Throttler => {
    const logger = { error() {}, warn: warned }
    return new Throttler({ policies: [{ name: 'api', limit, interval: '1m' }], store, logger })
  }
  const texts: string[] = []
  for (const limit of [10, 20]) make(limit, (text) => texts.push(text))
  await vi.waitFor(() => expect(texts).toHaveLength(1))
  expect(texts[0]).toMatch(/Policy "api" is made again by .*made-again\.test\.ts:\d+:\d+.*"limit" is 10 and 20.*"name"/)
  vi.stubEnv('NODE_ENV', 'production')
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
  for (const limit of [30])
    expect(thrownBy(() => make(limit, () => {})).message).toMatch(/made-again\.test\.ts.*made-again\.test\.ts.*globalThis/)
})

test('a throttler that is being closed is no reason to reject the next', async () => {
  const store = memoryStore()
  const make = (limit: number): Throttler => new Throttler({ policies: [{ name: 'api', limit, interval: '1m' }], store }).start()
  const first = make(10)
  const closing = first.close()
  const second = make(20)
  await closing
  await second.close()
})
