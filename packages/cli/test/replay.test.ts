import { expect, it } from 'vitest'
import type { LogRecord } from '../src/log/record.ts'
import { Replay } from '../src/replay/replay.ts'
import { START } from './weir.ts'

const HOUR = 3_600_000

function record(time: number): LogRecord {
  return {
    time,
    coarse: false,
    client: '192.0.2.1',
    clientField: '',
    method: 'GET',
    target: '/',
    valid: true,
    duration: undefined,
    status: undefined,
    field: () => undefined,
  }
}

it.each(['background', 'central', 'leased'] as const)(
  'a silence costs no heartbeats, and counts last through it: %s',
  async (coordination) => {
    const replay = new Replay({
      policies: [{ name: 'client', key: 'ip', limit: 20, interval: '1d', coordination }],
      overrides: [],
      nodes: 3,
      roundTrip: 1,
      maxKeys: 1_000,
      seed: 1,
    })
    // Two requests at a time, four hours apart from noon: 6 on the first day, 12 on each of 10 further days.
    const silences = 62
    for (let i = 0; i <= silences; i++) for (const second of [0, 1]) await replay.add(record(START + i * 4 * HOUR + second * 1_000))
    // 25 requests of one more day, hours apart from the others.
    for (let i = 0; i < 25; i++) await replay.add(record(START + 11 * 24 * HOUR + i * 1_000))
    await replay.close()
    const { tally, usage } = replay
    expect([tally?.requests, tally?.rejected, tally?.exactRejected]).toEqual([2 * silences + 2 + 25, 5, 5])
    // Without skipping, more than 70,000.
    expect(usage?.store.heartbeats).toBeLessThan(12 * silences)
    expect(usage?.warnings).toEqual([])
  },
)

it.each([1_000, 60_000])('a silence is skipped even if the store is %i ms away', async (roundTrip) => {
  const policies = [{ name: 'client', key: 'ip', limit: 20, interval: '1m' }] as const
  const replay = new Replay({ policies, overrides: [], nodes: 3, roundTrip, maxKeys: 1_000, seed: 1 })
  for (const day of [0, 30]) await replay.add(record(START + day * 24 * HOUR))
  await replay.close()
  expect([replay.tally?.allowed, replay.tally?.rejected]).toEqual([2, 0])
  // As many as for a silence of a day. Without skipping, more than 700,000.
  expect(replay.usage?.store.heartbeats).toBeLessThan(10_000)
})

it('requests that wait are decided in time, before a silence is skipped', async () => {
  const decided: number[] = []
  const policies = [{ name: 'client', key: 'ip', limit: 1, interval: '20s', delay: '1m' }] as const
  const replay = new Replay({ policies, overrides: [], nodes: 1, roundTrip: 1, maxKeys: 1_000, seed: 1 }, (_, decision) =>
    decided.push(decision?.allowed === true ? 1 : 0),
  )
  for (let i = 0; i < 3; i++) await replay.add(record(START + i))
  await replay.add(record(START + HOUR))
  await replay.close()
  expect(decided).toEqual([1, 1, 1, 1])
  // An exact count, too, allows them one by one, 20 s apart.
  expect(replay.tally?.policies[0]?.balance).toMatchObject({ beyond: 0, missed: 0 })
})
