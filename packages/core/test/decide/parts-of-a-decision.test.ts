import type { IncomingMessage } from 'node:http'
import { inspect } from 'node:util'
import { seeds } from '@weir/tooling/seed'
import { describe, expect, test } from 'vitest'
import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { Decision } from '../../src/decide/decision.ts'
import { createGuard, nodeReader } from '../../src/http/adapter.ts'
import { HeaderWriter } from '../../src/http/answer/headers.ts'
import { snapshot } from '../../src/inspect/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { offer, scene, seeded } from '../support/nodes.ts'

const levels = [
  { name: 'global', key: 'all', limit: 10, interval: '1m' },
  { name: 'user', limit: 3, interval: '10s' },
  { name: 'slow', limit: 8, interval: '1m', algorithm: slidingWindow() },
] as const

const summary = (decision: Decision): unknown => JSON.parse(JSON.stringify(decision))

function fields(writer: HeaderWriter, decision: Decision): Record<string, string> {
  const written: Record<string, string> = {}
  writer.write(decision, written, (target, name, value) => {
    target[name] = value
  })
  return written
}

test('tell what was true when the decision was made, also when they are asked for later', async () => {
  const { world, node } = scene()
  const throttler = node(levels)
  await world.run(2_000)
  throttler.check('a')
  const [early, late] = [throttler.check('a'), throttler.check('b')]
  const told = early.parts.map(summary)
  offer(throttler, 'a', 5)
  offer(throttler, 'b', 5)
  await world.run(30_000)
  throttler.update([
    { name: 'global', key: 'all', limit: 1, interval: '1m' },
    { name: 'user', limit: 1, interval: '10s' },
  ])
  throttler.check('a')
  expect(early.parts.map(summary)).toEqual(told)
  expect(late.parts.map(({ policy, key, limit, remaining, cost }) => [policy?.name, key, limit, remaining, cost])).toEqual([
    ['global', 'all', 10, 7, 1],
    ['user', 'b', 3, 2, 1],
    ['slow', 'b', 8, 7, 1],
  ])
  expect(late.parts.map(({ resetAfterMs }) => resetAfterMs)).toEqual([58_000, 8_000, 60_063])
  expect(late.resetAfterMs).toBe(8_000)
})

test('are the same objects each time, so that what is refunded shows in them', () => {
  const { node } = scene()
  const throttler = node(levels)
  const decision = throttler.check('a', 2)
  const { parts } = decision
  throttler.refund(decision, 1)
  expect(decision.parts).toBe(parts)
  expect(parts.map(({ cost }) => cost)).toEqual([1, 1, 1])
  expect(decision.cost).toBe(1)
  throttler.refund(parts[1] as Decision)
  expect(decision.parts.map(({ cost }) => cost)).toEqual([1, 0, 1])
})

test('keep the keys and costs that were given, though the lists of them are used again', () => {
  const { node } = scene()
  const throttler = node(levels)
  const keys = ['g', 'u', 's']
  const costs = [1, 2, 3]
  const decision = adapterOf(throttler).decide(keys, costs)
  keys.fill('other')
  costs.fill(9)
  expect(decision.parts.map(({ key, cost, remaining }) => [key, cost, remaining])).toEqual([
    ['g', 1, 9],
    ['u', 2, 1],
    ['s', 3, 5],
  ])
})

test('only policies that apply have one', () => {
  const { node } = scene()
  const throttler = node(levels)
  for (const places of [
    [0, 1],
    [1, 2],
    [0, 2],
    [0, 1],
  ]) {
    const decision = adapterOf(throttler).decide(['all', 'a', 'a'], [1, 1, 1], places, 2)
    expect(decision.parts.map(({ policy }) => policy?.name)).toEqual(places.map((place) => levels[place]?.name))
    const writer = new HeaderWriter(throttler.policies)
    expect(fields(writer, decision)['RateLimit']?.match(/"\w+"/g)).toEqual(places.map((place) => `"${levels[place]?.name}"`))
  }
})

test('change nothing of what header fields, logs and JSON say', async () => {
  const { world, node } = scene()
  const throttler = node(levels)
  await world.run(3_210)
  for (const style of ['draft-11', ['draft-11', 'legacy']] as const) {
    const writer = new HeaderWriter(throttler.policies, style)
    const decision = throttler.check('a')
    const [written, logged, json] = [fields(writer, decision), inspect(decision), JSON.stringify(decision)]
    expect(decision.parts).toHaveLength(3)
    expect([fields(writer, decision), inspect(decision), JSON.stringify(decision)]).toEqual([written, logged, json])
    expect(fields(new HeaderWriter(throttler.policies, style), asPlain(decision))).toEqual(written)
  }
})

/** A decision as a plain object, as users could make it. Its fields are then written from its parts. */
function asPlain(decision: Decision): Decision {
  return { ...decision.toJSON(), parts: decision.parts, toJSON: () => decision.toJSON() }
}

// If a later level rejects, the earlier levels are restored. With fractions they must be equal to the last bit.
describe.each([
  ['whole units', 1],
  ['fractions', 0.1],
])('agree with a naive model, %s', (_, unit) => {
  test.each(seeds(3))('seed %i', (seed) => {
    const { node } = scene()
    const limits = [15, 6, 4].map((limit) => limit * 4 * unit)
    const throttler = node(limits.map((limit, i) => ({ name: `p${i}`, limit, interval: '1h' })))
    const random = seeded(seed)
    const used = new Map<string, number>()
    const rejections = [0, 0, 0]
    for (let i = 0; i < 500; i++) {
      const keys = [0, 1, 2].map((level) => `${level}:${Math.floor(random() * (level === 0 ? 1 : 4 * level))}`)
      // A cost that never fits is rejected by each level.
      const costs = [0, 1, 2].map(() => (random() < 0.1 ? 65 : Math.ceil(random() * (random() < 0.3 ? 9 : 1))) * unit)
      const units = keys.map((key) => used.get(key) ?? 0)
      const fits = units.map((before, level) => before + (costs[level] as number) <= (limits[level] as number))
      const allowed = fits.every(Boolean)
      for (const [level, key] of keys.entries()) {
        if (allowed) used.set(key, (units[level] as number) + (costs[level] as number))
        else if (fits[level] === false) rejections[level] = (rejections[level] as number) + 1
      }
      const decision = adapterOf(throttler).decide(keys, costs)
      expect(decision.allowed).toBe(allowed)
      expect(decision.parts.map(({ reason, cost, remaining }) => [reason, cost, remaining])).toEqual(
        keys.map((key, level) => [
          fits[level] === true ? 'ok' : 'limit',
          allowed ? costs[level] : 0,
          Math.max(0, (limits[level] as number) - (used.get(key) ?? 0)),
        ]),
      )
      const waits = decision.parts.map((part) => part.retryAfterMs)
      expect(waits.map((wait) => wait > 0)).toEqual(fits.map((fit) => !fit))
      expect(decision.retryAfterMs).toBe(Math.max(...waits))
    }
    expect(snapshot(throttler).policies.map(({ rejected }) => rejected)).toEqual(rejections)
    expect(Math.min(...rejections)).toBeGreaterThan(10)
  })
})

test('the fields of a decision are computed, so a spread of one is an error of types', () => {
  const decision: Decision = scene().node({ limit: 3, interval: '10s' }).check('a')
  const copy = { ...decision }
  // @ts-expect-error: a copy has no fields
  expect(copy.allowed).toBe(undefined)
  const { allowed, delayMs, ...rest } = decision
  expect([allowed, delayMs]).toEqual([true, 0])
  // @ts-expect-error: and neither has the rest
  expect(rest.limit).toBe(undefined)
  expect(JSON.parse(JSON.stringify(decision))).toMatchObject({ allowed: true, delayMs: 0, limit: 3 })
})

test('whoever made a decision, toJSON() returns a plain object of all fields but its parts, and logs show it', async () => {
  const { world, node } = scene()
  const fields = 'allowed,reason,policy,key,limit,remaining,resetAfterMs,retryAfterMs,delayMs,cost,dryRun'.split(',')
  const one = node({ name: 'one', limit: 1, interval: '10s' })
  const paced = node({ name: 'paced', limit: 10, interval: '10s', algorithm: leakyBucket(), coordination: 'local' })
  paced.check('a')
  const held = paced.acquire('a')
  const request = { method: 'GET', url: '/', headers: {}, socket: { remoteAddress: '192.0.2.1' } } as unknown as IncomingMessage
  const clock = world.clock()
  const guard = (options: object) => createGuard({ key: 'ip', limit: 1, interval: '1h', clock, ...options }, nodeReader)
  const [denying, dry] = [guard({ deny: () => true }), guard({ dryRun: true })]
  await dry.check(request)
  await world.run(2_000)
  const decisions = {
    allowed: one.check('a'),
    rejected: one.check('a'),
    levels: node(levels).check('a'),
    held: await held,
    denied: await denying.check(request),
    dryRun: await dry.check(request),
  }
  for (const [name, decision] of Object.entries(decisions)) {
    const plain = decision?.toJSON()
    expect(Object.keys({ ...plain }), name).toEqual(fields)
    expect(plain, name).toEqual(Object.fromEntries(fields.map((field) => [field, decision?.[field as 'key']])))
    expect(JSON.stringify(decision), name).toBe(JSON.stringify(plain))
    expect(inspect(decision), name).toBe(inspect(plain))
    // Loggers may add fields to it without an effect on other readers.
    expect(decision?.toJSON(), name).not.toBe(plain)
  }
  expect(decisions).toMatchObject({
    denied: { reason: 'denied', parts: [] },
    dryRun: { dryRun: true, reason: 'limit' },
    held: { delayMs: 0 },
  })
  expect(decisions.held.parts).toHaveLength(1)
})
