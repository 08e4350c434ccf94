import { describe, expect, test, vi } from 'vitest'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { createThrottler, tokenBucket } from '../../src/index.ts'
import { type FollowOptions, follow, type RulesFollower, type RulesSource } from '../../src/rules/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { Throttler } from '../../src/throttler/throttler.ts'
import { type Node, offer, scene, thrownBy } from '../support/nodes.ts'
import type { World } from '../support/world.ts'

const POLICY = { name: 'a', limit: 10, interval: '1h', key: 'ip' } as const

/** A source whose text the test sets. */
class Held implements RulesSource {
  readonly name = 'the test'
  readonly interval = 60_000
  text: string | undefined
  fails: unknown
  silent = false
  reads = 0
  readonly changed = new Set<() => void>()

  constructor(rules?: object) {
    this.text = rules === undefined ? undefined : JSON.stringify(rules)
  }

  async read(): Promise<string | undefined> {
    this.reads++
    if (this.silent) await new Promise(() => {})
    if (this.fails !== undefined) throw this.fails
    return this.text
  }

  watch(changed: () => void): () => void {
    this.changed.add(changed)
    return () => this.changed.delete(changed)
  }

  put(rules: object | string): void {
    this.text = typeof rules === 'string' ? rules : JSON.stringify(rules)
    for (const tell of this.changed) tell()
  }
}

const rules = (version: number, limit: number, more: object = {}, policy: object = {}) => ({
  version,
  policies: [{ ...POLICY, limit, ...policy }],
  ...more,
})

interface Followed {
  readonly world: World
  readonly node: Node
  readonly source: Held
  readonly rules: RulesFollower
  readonly warned: string[]
}

async function followed(
  source: Held,
  { policy = POLICY, ...options }: FollowOptions & { policy?: PolicyOptions<never> } = {},
): Promise<Followed> {
  const { node: make, world } = scene()
  const node = make(policy, { alone: true })
  const warned: string[] = []
  node.on('warning', ({ error }) => warned.push(`${error.code}: ${error.message}`))
  const follower = follow(node, source, options)
  await world.settle()
  return { world, node, source, rules: follower, warned }
}

describe('a throttler that follows rules', () => {
  test('has those of the source, and keeps counts and blocks through each change', async () => {
    const { world, node, source, rules: follower } = await followed(new Held(rules(1, 5)))
    await follower.ready
    expect(follower.status).toMatchObject({ version: 1, from: 'source', rejected: undefined, away: undefined })
    expect(offer(node, 'k', 4)).toBe(4)
    node.block('bad', '10m')
    source.put(rules(2, 7))
    await world.settle()
    expect(follower.status.version).toBe(2)
    expect(offer(node, 'k', 10)).toBe(3)
    expect(node.check('bad').reason).toBe('blocked')
    // A return to older rules is a change like any other.
    source.put(rules(1, 5))
    await world.settle()
    expect(follower.status.version).toBe(1)
    expect(node.check('k').allowed).toBe(false)
  })

  test('tells of each version once, with who and why', async () => {
    const { world, node, source } = await followed(new Held(rules(1, 5)))
    const told: unknown[] = []
    node.on('rulesApplied', (event) => told.push(event))
    source.put(rules(7, 6, { change: { by: 'alice', why: 'incident' } }))
    source.put(source.text as string)
    await world.settle()
    await world.run(300_000)
    expect(told).toEqual([{ version: 7, before: 1, by: 'alice', why: 'incident' }])
  })

  test('is told of by what a snapshot reads', async () => {
    const { node, rules: follower } = await followed(new Held(rules(1, 5)))
    expect(adapterOf(node).inspected.followed?.status).toBe(follower.status)
  })

  test('reads regularly, as a message may be lost', async () => {
    const { world, source, rules: follower } = await followed(new Held(rules(1, 5)))
    source.text = JSON.stringify(rules(2, 5))
    await world.run(59_000)
    expect(follower.status.version).toBe(1)
    await world.run(1_500)
    expect(follower.status.version).toBe(2)
  })

  test('has them no more of a source after close, nor when it is closed itself', async () => {
    const first = await followed(new Held(rules(1, 5)))
    first.rules.close()
    expect(first.source.changed.size).toBe(0)
    first.source.text = JSON.stringify(rules(2, 5))
    await first.world.run(600_000)
    expect(first.rules.status.version).toBe(1)

    const second = await followed(new Held(rules(1, 5)))
    await second.node.close()
    const { reads } = second.source
    await second.world.run(600_000)
    expect(second.source.reads).toBeLessThanOrEqual(reads + 1)
    expect(second.source.changed.size).toBe(0)
  })
})

describe('a bad document', () => {
  test('changes nothing, and is told once with its place', async () => {
    const { world, node, source, rules: follower, warned } = await followed(new Held(rules(1, 5)))
    source.put('{\n "version": 7,\n "policies": [{ "name": "a",\n "limit": -1, "interval": "1h", "key": "ip" }] }')
    await world.settle()
    await world.run(300_000)
    expect(node.policies[0]?.limit).toBe(5)
    expect(follower.status).toMatchObject({ version: 1, rejected: { version: 7 } })
    expect(follower.status.rejected?.problem).toMatch(/^policies\[0\]\.limit \(line 4, column 11\): /)
    expect(warned).toEqual([
      expect.stringMatching(
        /^WEIR_RULES_REJECTED: Rules of version 7 are rejected: policies\[0\]\.limit \(line 4, column 11\).*\(the test; version 1 still applies\) See \S+$/,
      ),
    ])
    source.put(rules(8, 6))
    await world.settle()
    expect(follower.status).toMatchObject({ version: 8, rejected: undefined })
  })

  test.each([
    ['torn', '{ "version": 2, "poli'],
    ['empty', ''],
    ['of another kind', '[]'],
    ['for a store that is not there', JSON.stringify(rules(2, 5, {}, { coordination: 'leased' }))],
    ['one whose requests must wait, where "check" decides', JSON.stringify(rules(2, 5, {}, { delay: '5s' }))],
  ])('that is %s', async (_, text) => {
    const { world, node, source, rules: follower } = await followed(new Held(rules(1, 5)))
    source.put(text)
    await world.settle()
    expect(follower.status).toMatchObject({ version: 1, rejected: {} })
    expect(node.check('k').allowed).toBe(true)
  })

  test('is told again when it comes back', async () => {
    const { world, source, warned } = await followed(new Held(rules(1, 5)))
    for (const text of ['{', JSON.stringify(rules(1, 5)), '{']) {
      source.put(text)
      await world.settle()
    }
    expect(warned).toHaveLength(2)
  })

  test('at the start leaves the policies of the code', async () => {
    const { node, rules: follower } = await followed(new Held({ version: 1, policies: [] }))
    await follower.ready
    expect(follower.status).toMatchObject({ version: undefined, rejected: { version: 1 } })
    expect(node.policies[0]?.limit).toBe(10)
  })
})

describe('requests may wait', () => {
  const waiting = () => new Held(rules(2, 5, {}, { delay: '5s' }))

  test('where an adapter decides', async () => {
    const throttler = createThrottler({ policies: [{ ...POLICY, coordination: 'local' }] })
    const follower = follow({ throttler }, waiting())
    await follower.ready
    expect(follower.status.version).toBe(2)
    // The queue is loaded meanwhile.
    expect(await throttler.checkAsync('k')).toMatchObject({ allowed: true })
    follower.close()
  })

  test('where they could before', async () => {
    const { node, rules: follower } = await followed(waiting(), { policy: { ...POLICY, delay: '1s' } })
    expect(follower.status.version).toBe(2)
    expect(await node.checkAsync('k')).toMatchObject({ allowed: true })
  })
})

describe('a source that is away', () => {
  test('changes nothing, is told of once, and is asked again soon', async () => {
    const { world, source, rules: follower, warned } = await followed(new Held(rules(1, 5)))
    source.fails = new Error('no\nconnection')
    source.put(rules(2, 6))
    await world.run(30_000)
    expect(follower.status).toMatchObject({ version: 1, away: 'no connection' })
    expect(warned).toEqual([
      "WEIR_WARN_RULES_SOURCE: Rules can't be read from the test: no connection. Version 1 still applies, and Weir tries again. Check the source. See @weir/core/docs/errors/weir_warn_rules_source.md",
    ])
    source.fails = undefined
    await world.run(10_000)
    expect(follower.status).toMatchObject({ version: 2, away: undefined })
  })

  test('does not hold anybody up when it does not answer', async () => {
    const source = new Held(rules(1, 5))
    source.silent = true
    const { world, rules: follower } = await followed(source, { timeout: '2s' })
    await world.run(1_999)
    expect(follower.status.away).toBe(undefined)
    await world.run(2)
    await follower.ready
    expect(follower.status.away).toBe('it did not answer within 2000 ms')
    source.silent = false
    await world.run(1_000)
    expect(follower.status.version).toBe(1)
  })

  test('is away while it holds nothing', async () => {
    const { rules: follower } = await followed(new Held())
    expect(follower.status).toMatchObject({ version: undefined, away: 'it contains no rules' })
  })
})

describe('a limit of one key', () => {
  const until = (ms: number) => new Date(1_800_000_000_000 + ms).toISOString()

  test('holds until its time, by the wall clock of the throttler', async () => {
    const overrides = [
      { policy: 'a', key: 'acme', limit: 50, until: until(90_000) },
      { policy: 'a', key: 'forever', limit: 0 },
      { policy: 'a', key: 'past', limit: 1, until: until(-1) },
    ]
    const { world, node } = await followed(new Held(rules(1, 5, { overrides })))
    expect(offer(node, 'acme', 100)).toBe(50)
    expect(offer(node, 'forever', 3)).toBe(0)
    expect(offer(node, 'past', 10)).toBe(5)
    await world.run(89_900)
    expect(node.peek('acme').limit).toBe(50)
    await world.run(200)
    expect(node.peek('acme').limit).toBe(5)
    expect(node.peek('forever').limit).toBe(0)
  })

  test('that can not end now ends later, and the process goes on', async () => {
    const overrides = [{ policy: 'a', key: 'acme', limit: 50, until: until(90_000) }]
    const { world, node, warned } = await followed(new Held(rules(1, 5, { overrides })))
    const update = vi.spyOn(node, 'update').mockImplementationOnce(() => {
      throw new Error('others disagree')
    })
    await world.run(90_100)
    expect(node.peek('acme').limit).toBe(50)
    expect(warned).toEqual([expect.stringContaining('others disagree')])
    await world.run(60_000)
    expect(node.peek('acme').limit).toBe(5)
    expect(update).toHaveBeenCalledTimes(2)
    expect(warned).toHaveLength(1)
  })

  test('of a policy with plans is one of each plan, or of the one that is named', async () => {
    const source = new Held({
      version: 1,
      policies: [{ name: 'a', key: 'ip', interval: '1h', plans: { free: 1, pro: 5 }, plan: 'planOf' }],
      overrides: [
        { policy: 'a', key: 'both', limit: 3 },
        { policy: 'a:pro', key: 'one', limit: 4 },
      ],
    })
    const { node } = await followed(source, { plans: { planOf: () => 'free' } })
    const limitsOf = (key: string) => node.peek(key).parts.map(({ limit }) => limit)
    expect(limitsOf('both')).toEqual([3, 3])
    expect(limitsOf('one')).toEqual([1, 4])
    expect(limitsOf('none')).toEqual([1, 5])
  })
})

test('bad options are rejected', () => {
  const throttler = createThrottler({ policies: [{ ...POLICY, coordination: 'local' }] })
  const source = new Held()
  expect(thrownBy(() => follow(throttler, undefined as never))).toMatchObject({ code: 'WEIR_INVALID_OPTION' })
  expect(thrownBy(() => follow(throttler, source, { key: {} } as never))?.message).toContain('Did you mean "keys"?')
  expect(thrownBy(() => follow(throttler, source, { timeout: 1 }))?.message).toContain('timeout')
  expect(thrownBy(() => follow(throttler, source, { algorithms: { tokenBucket, concurrency: 5 as never } }))?.message).toContain(
    'algorithms.concurrency',
  )
})

test('two throttlers of a process that count together follow the same rules one after the other', async () => {
  const { store, world } = scene()
  const shared = {
    kind: 'mine',
    address: 'two that follow',
    decides: store.decides,
    coordinate: store.coordinate,
    open: store.open.bind(store),
  }
  const source = new Held(rules(1, 5))
  const nodes = [1, 2].map(() => new Throttler({ policies: [POLICY], clock: world.clock(), store: { ...shared } }))
  const followers = nodes.map((node) => follow(node, source))
  await world.settle()
  source.put(rules(2, 6))
  await world.settle()
  expect(followers.map(({ status }) => [status.version, status.rejected])).toEqual([
    [2, undefined],
    [2, undefined],
  ])
})

describe('rules that can not hold now', () => {
  test('are told of once, and hold as soon as what is in their way has gone', async () => {
    const { world, node, source, rules: follower, warned } = await followed(new Held(rules(1, 5)))
    const disagree = vi.spyOn(node, 'update').mockImplementation(() => {
      throw new Error('others disagree')
    })
    source.put(rules(2, 7))
    await world.settle()
    await world.run(180_000)
    expect(follower.status).toMatchObject({ version: 1, rejected: { version: 2, problem: expect.stringContaining('others disagree') } })
    expect(warned).toHaveLength(1)
    disagree.mockRestore()
    await world.run(61_000)
    expect(follower.status).toMatchObject({ version: 2, rejected: undefined })
    expect(node.peek('k').limit).toBe(7)
    expect(warned).toHaveLength(1)
  })

  test('give way to a later document', async () => {
    const { world, node, source, rules: follower } = await followed(new Held(rules(1, 5)))
    vi.spyOn(node, 'update').mockImplementationOnce(() => {
      throw new Error('others disagree')
    })
    source.put(rules(2, 7))
    await world.settle()
    source.put(rules(3, 8))
    await world.settle()
    await world.run(180_000)
    expect(follower.status).toMatchObject({ version: 3, rejected: undefined })
    source.put('{')
    await world.settle()
    await world.run(180_000)
    expect(follower.status).toMatchObject({ version: 3, rejected: { version: undefined } })
    expect(node.peek('k').limit).toBe(8)
  })
})
