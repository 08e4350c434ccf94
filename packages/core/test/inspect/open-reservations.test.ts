import { expect, test } from 'vitest'
import { createThrottler } from '../../src/index.ts'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { statusOf } from '../../src/inspect/node-status.ts'
import { formatStatus, parseStatus } from '../../src/inspect/status-text.ts'
import { scene } from '../support/nodes.ts'

const POLICIES = [
  { name: 'requests', limit: 100, interval: '1h' },
  { name: 'tokens', limit: 10_000, interval: '1h' },
  { name: 'other', limit: 100, interval: '1h' },
] as const

test('a snapshot counts the open reservations of each policy, their units, and how the others have ended', async () => {
  const { world, node } = scene()
  const throttler = node([...POLICIES], { alone: true })
  const none = { open: 0, units: 0, settled: 0, cancelled: 0, expired: 0 }
  const of = () => snapshot(throttler).policies.map(({ reservations }) => reservations)
  expect(of()).toEqual([none, none, none])
  const [first, second] = [1, 2, 3].map((i) => throttler.reserve(`k${i}`, { cost: { requests: 1, tokens: 900 }, ttl: '10s' }))
  throttler.reserve('long', { cost: { tokens: 300 }, ttl: '10m' })
  expect(throttler.reserve('large', { cost: { tokens: 10_001 } }).allowed).toBe(false)
  expect(of()).toEqual([{ ...none, open: 3, units: 3 }, { ...none, open: 4, units: 3_000 }, none])
  first?.settle({ tokens: 5_000 })
  second?.cancel()
  await world.run(11_000)
  const ended = { settled: 1, cancelled: 1, expired: 1 }
  expect(of()).toEqual([{ open: 0, units: 0, ...ended }, { open: 1, units: 300, ...ended }, none])
})

test('a process reports its open reservations to the others, only for policies that have some', async () => {
  const { world, node } = scene()
  const [one, two] = [node([...POLICIES]), node([...POLICIES])]
  one.start()
  two.start()
  const receipt = two.reserve('k', { cost: { requests: 1, tokens: 900 } })
  const look = async () => {
    for (let i = 0; i < 3; i++) {
      cluster(one)
      await world.run(1_000)
    }
    return cluster(one)
      .find(({ self }) => !self)
      ?.policies.map(({ reservations }) => reservations)
  }
  expect(await look()).toEqual([{ open: 1, units: 1 }, { open: 1, units: 900 }, undefined])
  receipt.settle()
  expect(await look()).toEqual([undefined, undefined, undefined])
})

test.each([7, { open: -1, units: 5 }, { open: 1 }, { open: 1, units: '5' }])(
  'a status with unusable open reservations is no status: %j',
  (reservations) => {
    const throttler = createThrottler({ policies: [{ limit: 5, interval: '1h' }] })
    const status = statusOf(snapshot(throttler), 'host:1', 5)
    const withThem = (given: unknown) =>
      formatStatus({ ...status, policies: status.policies.map((one) => ({ ...one, reservations: given as never })) })
    expect(parseStatus(withThem({ open: 1, units: 5 }))?.policies[0]?.reservations).toEqual({ open: 1, units: 5 })
    expect(parseStatus(withThem(reservations))).toBeUndefined()
  },
)
