import { expect, test } from 'vitest'
import { auditOf } from '../../src/hub/audit.ts'
import { Hub } from '../../src/hub/index.ts'
import { createThrottler, memoryStore, type Store, systemClock, type Throttler, type ThrottlerOptions } from '../../src/index.ts'
import { auditLog, recordAction } from '../../src/inspect/index.ts'
import { LONGEST_AUDITED } from '../../src/store/contract.ts'
import { type AuditLog, backgroundStore } from '../../src/sync/index.ts'

const DAY = 86_400_000
const policies = [{ name: 'login', limit: 5, interval: '1h' }] as const

function started(store?: Store): Throttler {
  const options = { policies, ...(store && { store }) } as ThrottlerOptions<never>
  const throttler = createThrottler(options) as unknown as Throttler
  throttler.start()
  return throttler
}

/** A memory store with another log, and the warnings of a throttler with it. */
function withLog(audit: () => Promise<AuditLog>): { throttler: Throttler; warnings: string[] } {
  const memory = memoryStore(new Hub(systemClock))
  const store = backgroundStore({ kind: 'mine', open: (node) => ({ ...memory.open(node), audit }) })
  const warnings: string[] = []
  const throttler = started(store)
  throttler.on('warning', ({ error }) => warnings.push(error.message))
  return { throttler, warnings }
}

test('an action with a reason is in the log of all processes with the store, the newest one first', async () => {
  const hub = new Hub(systemClock)
  const [one, two] = [started(memoryStore(hub)), started(memoryStore(hub))]
  const before = Date.now()
  one.block('mallory', '1h', { reason: 'scraping', policy: 'login' })
  await one.close()
  two.unblock('mallory', { reason: 'a false alarm' })
  await two.close()
  const three = started(memoryStore(hub))
  three.block('eve', '1h')
  await recordAction(three, { action: 'reset', key: 'eve', by: 'alice@laptop' })
  const entries = await auditLog(three)
  expect(entries).toEqual([
    { time: expect.any(Number), by: 'alice@laptop', action: 'reset', key: 'eve', reason: '' },
    {
      time: expect.any(Number),
      by: expect.stringContaining(`:${process.pid}`),
      action: 'unblock',
      key: 'mallory',
      reason: 'a false alarm',
    },
    { time: expect.any(Number), by: expect.any(String), action: 'block', policy: 'login', key: 'mallory', reason: 'scraping' },
  ])
  expect(entries.every(({ time }) => time >= before && time <= Date.now())).toBe(true)
  expect(await auditLog(three, { most: 1 })).toHaveLength(1)
  await three.close()
})

test('a throttler without a store keeps its newest 100 entries', async () => {
  const throttler = started()
  for (let i = 0; i < 150; i++) await recordAction(throttler, { action: 'block', key: `key ${i}` })
  const entries = await auditLog(throttler, { most: 1_000 })
  expect(entries.map(({ key }) => key)).toEqual(Array.from({ length: 100 }, (_, i) => `key ${149 - i}`))
  expect(await auditLog(started())).toEqual([])
})

test('a hub keeps 1,000 of 5,000 entries', async () => {
  const hub = new Hub(systemClock)
  const throttler = started(memoryStore(hub))
  await recordAction(throttler, { action: 'block', key: 'first' })
  const [{ entry: text } = { entry: '' }] = hub.audited
  const log = auditOf(hub)
  for (let i = 0; i < 5_000; i++) await log.add(text.replace('first', `key ${i}`))
  expect(hub.audited).toHaveLength(1_000)
  const entries = await auditLog(throttler, { most: 5_000 })
  expect([entries.length, entries[0]?.key, entries.at(-1)?.key]).toEqual([1_000, 'key 4999', 'key 4000'])
  await throttler.close()
})

test('a hub keeps an entry for 90 days', async () => {
  let time = 5_000
  const log = auditOf(new Hub({ ...systemClock, monotonic: () => time }))
  await log.add('old')
  time += 89 * DAY
  await log.add('new')
  expect(await log.list(10)).toEqual(['new', 'old'])
  time += 2 * DAY
  expect(await log.list(10)).toEqual(['new'])
})

test('an action takes effect even if the store can not keep its entry, and the throttler warns once', async () => {
  for (const audit of [
    () => Promise.reject(new Error('no connection')),
    () => {
      throw new Error('no connection')
    },
    async () => ({ add: () => Promise.reject(new Error('no connection')), list: () => Promise.reject(new Error('no connection')) }),
  ]) {
    const { throttler, warnings } = withLog(audit)
    for (let i = 0; i < 3; i++) throttler.block(`mallory ${i}`, '1h', { reason: 'scraping' })
    expect(throttler.peek('mallory 0').allowed).toBe(false)
    await recordAction(throttler, { action: 'reset', key: 'k' })
    await expect(auditLog(throttler)).rejects.toThrow('no connection')
    await throttler.close()
    expect(warnings).toEqual([
      expect.stringMatching(/^The \w+ of ".*" took effect, but the audit log doesn't contain it \(no connection\)/),
    ])
  }
})

test('close waits for the log within closeTimeout', async () => {
  const memory = memoryStore(new Hub(systemClock))
  const silent = { add: () => new Promise<never>(() => {}), list: async () => [] }
  const store = backgroundStore({ kind: 'mine', open: (node) => ({ ...memory.open(node), audit: async () => silent }) })
  const throttler = createThrottler({ policies, store, closeTimeout: 50 } as ThrottlerOptions<never>) as unknown as Throttler
  const warnings: string[] = []
  throttler.on('warning', ({ error }) => warnings.push(error.message))
  throttler.block('mallory', '1h', { reason: 'scraping' })
  await throttler.close()
  // The warning about the log comes after 5 s.
  expect(warnings).toEqual([])
})

test('entries of another form are left out, and long ones are shortened before they are sent', async () => {
  const good = { time: 5, by: 'a', action: 'block', key: 'k', reason: '' }
  const texts: unknown[] = [
    JSON.stringify(good),
    '',
    '{',
    'null',
    '[]',
    5,
    undefined,
    JSON.stringify({ ...good, time: 1e300 }),
    JSON.stringify({ ...good, key: 'k'.repeat(257) }),
    JSON.stringify({ ...good, by: {} }),
    JSON.stringify({ ...good, more: 'x'.repeat(1_000) }),
    JSON.stringify({ ...good, policy: 'login', more: 1 }),
  ]
  const added: string[] = []
  const { throttler } = withLog(async () => ({ add: async (entry) => void added.push(entry), list: async () => texts as string[] }))
  expect(await auditLog(throttler)).toEqual([good, { ...good, policy: 'login' }])
  for (const part of ['x'.repeat(5_000), '\u0000'.repeat(1_024), '\ud800'.repeat(1_024)]) {
    await recordAction(throttler, { action: part, key: part, policy: part, by: part, reason: part })
  }
  texts.splice(0, Number.POSITIVE_INFINITY, ...added)
  expect(added.every(({ length }) => length <= LONGEST_AUDITED)).toBe(true)
  expect((await auditLog(throttler)).map(({ key }) => key[0])).toEqual(['x', '\u0000', '\ud800'])
  await throttler.close()
})

test('a log that is no list is an empty one', async () => {
  const { throttler } = withLog(async () => ({ add: async () => {}, list: async () => 'many' as never }))
  expect(await auditLog(throttler)).toEqual([])
  await throttler.close()
})

test('a reason that is no text is rejected, and changes nothing', () => {
  const throttler = started()
  expect(() => throttler.block('k', '1h', { reason: 5 as never })).toThrow(/"reason"/)
  expect(throttler.peek('k').allowed).toBe(true)
})
