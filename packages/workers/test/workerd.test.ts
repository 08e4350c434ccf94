import { fileURLToPath } from 'node:url'
import { bundleWorker, Workerd } from '@weir/tooling/workerd'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

/** The isolates of the Worker. Each is a process of its throttlers. */
const ISOLATES = [0, 1, 2]
/** Milliseconds. */
const PATIENCE = { timeout: 10_000, interval: 50 }

let workerd: Workerd
beforeAll(async () => {
  const code = await bundleWorker(fileURLToPath(new URL('worker.ts', import.meta.url)))
  workerd = await Workerd.start(code, ISOLATES.length, { WEIR: 'TestHub', BROKEN: 'BrokenHub' })
})
afterAll(() => workerd.close())

async function statusOf(isolate: number, path: string, key: string): Promise<number> {
  const response = await workerd.fetch(isolate, path, { headers: { 'x-key': key } })
  await response.arrayBuffer()
  return response.status
}

async function jsonOf(isolate: number, path: string, key = ''): Promise<unknown> {
  return (await workerd.fetch(isolate, path, { headers: { 'x-key': key } })).json()
}

/** Sends requests to all isolates in turn. Returns the number of allowed ones. */
async function allowedOf(path: string, key: string, requests: number, pause = 0): Promise<number> {
  let allowed = 0
  for (let i = 0; i < requests; i++) {
    if ((await statusOf(i % ISOLATES.length, path, key)) === 200) allowed++
    if (pause > 0) await new Promise((resolve) => setTimeout(resolve, pause))
  }
  return allowed
}

describe('three isolates of a Worker with a Durable Object in workerd', () => {
  test('requests count from the first one of an isolate on', async () => {
    const statuses: number[] = []
    for (let i = 0; i < 5; i++) statuses.push(await statusOf(0, '/first', 'a'))
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  })

  test.each(['/background', '/sharded'])('%s: the limit holds over all of them, although no request waits', async (path) => {
    const allowed = await allowedOf(path, 'a', 200, 5)
    expect(allowed).toBeGreaterThanOrEqual(95)
    expect(allowed).toBeLessThanOrEqual(110)
  })

  test.each(['/central', '/leased'])('%s: exactly the limit is allowed', async (path) => {
    expect(await allowedOf(path, 'a', 60)).toBe(20)
  })

  test('requests that must wait are delayed within their own request', async () => {
    const sent = Array.from({ length: 6 }, (_, i) => statusOf(i % ISOLATES.length, '/delayed', 'a'))
    expect(await Promise.all(sent)).toEqual(Array.from({ length: 6 }, () => 200))
    const acquired = Array.from({ length: 9 }, (_, i) => jsonOf(i % ISOLATES.length, '/waiting', 'a'))
    expect(await Promise.all(acquired)).toEqual(Array.from({ length: 9 }, () => expect.objectContaining({ allowed: true })))
  })

  test('a block reaches the other isolates, and stays when the object ends and when all processes end', async () => {
    const isBlocked = (isolate: number) =>
      vi.waitFor(async () => expect(await jsonOf(isolate, '/background/peek', 'b')).toMatchObject({ allowed: false }), PATIENCE)
    await jsonOf(0, '/background/block', 'b')
    for (const isolate of ISOLATES) await isBlocked(isolate)
    await statusOf(0, '/abort', '')
    for (const isolate of ISOLATES) await isBlocked(isolate)

    await workerd.end()
    await workerd.begin()
    for (const isolate of ISOLATES) await isBlocked(isolate)
    expect(await allowedOf('/leased', 'a', 30), 'units leased before the end').toBe(0)
  })

  test('if the object ends, isolates send their counts again', async () => {
    expect(await allowedOf('/background', 'c', 90, 2)).toBe(90)
    await statusOf(0, '/abort', '')
    const allowed = await allowedOf('/background', 'c', 60, 20)
    expect(allowed).toBeGreaterThanOrEqual(5)
    expect(allowed).toBeLessThanOrEqual(20)
  })

  test('if the object fails, policies use their failMode', async () => {
    await vi.waitFor(async () => expect(await statusOf(0, '/closed', 'a')).not.toBe(200), PATIENCE)
    // Until the first sync has failed, the throttler counts alone.
    await vi.waitFor(async () => {
      for (let i = 0; i < 30; i++) expect(await statusOf(0, '/open', 'a')).toBe(200)
    }, PATIENCE)
  })

  test('a missing binding is reported with the lines to add', async () => {
    await vi.waitFor(async () => {
      await statusOf(0, '/missing', 'a')
      expect(String(await jsonOf(0, '/down'))).toContain('"new_sqlite_classes": ["WeirHub"]')
    }, PATIENCE)
  })

  test('only limits with slots or delays warn, once each, if Workers report no clients that leave', async () => {
    for (let i = 0; i < 4; i++) expect(await statusOf(0, '/slots', 'left')).toBe(200)
    for (let i = 0; i < 3; i++) expect(await statusOf(0, '/delayed', 'left')).toBe(200)
    const flag = 'Add "compatibility_flags": ["enable_request_signal"] to wrangler.jsonc'
    const warnings = ((await jsonOf(0, '/warnings')) as string[]).filter((text) => text.includes(flag))
    expect(warnings.map((text) => text.split(':')[0]).sort()).toEqual(['delayed', 'slots'])
  })

  test('workerd has cancelled no request as hung, and seen no unhandled rejection', () => {
    expect(workerd.log).not.toMatch(/hung|Uncaught \(in promise\)|different request context/i)
  })
})
