import { afterEach, beforeEach, expect, test, vi } from 'vitest'

/** A process warns once, so each test loads its own copy of the code. */
const told: string[] = []
let createThrottler: typeof import('../../src/throttler/throttler.ts').createThrottler
const load = async () => {
  vi.resetModules()
  createThrottler = (await import('../../src/throttler/throttler.ts')).createThrottler
}
beforeEach(async () => {
  await load()
  told.length = 0
  vi.spyOn(process, 'emitWarning').mockImplementation((message, options) => {
    told.push(`${(options as { readonly code?: string }).code}: ${String(message)}`)
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const POLICY = { limit: 2, interval: '1m', coordination: 'local' } as const
const TO_FAKE = { 'Date alone': ['Date'], 'timers alone': ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] } as const

const throttlerThat = (options: object = {}) => createThrottler({ policies: [POLICY], ...options })

test.each(Object.entries(TO_FAKE))('%s, before a throttler is made, is warned of once', (_, toFake) => {
  vi.useFakeTimers({ toFake: [...toFake] })
  const throttler = throttlerThat()
  for (let i = 0; i < 3; i++) throttler.check('a')
  vi.advanceTimersByTime(60_000)
  throttler.check('a')
  expect(told).toEqual([expect.stringMatching(/^WEIR_WARN_FAKE_TIME: .*vi\.useFakeTimers\(/)])
})

test('Date alone, after a throttler was made, is warned of once', () => {
  const throttler = throttlerThat()
  throttler.check('a')
  expect(told).toEqual([])
  vi.useFakeTimers({ toFake: ['Date'] })
  throttler.check('a')
  throttler.check('a')
  expect(told).toEqual([expect.stringMatching(/^WEIR_WARN_FAKE_TIME: Date is faked, but process\.hrtime is not/)])
})

test.each([
  ['everything', undefined],
  ['Date and hrtime', ['Date', 'hrtime'] as const],
])('nothing is said where a test fakes %s, and time passes', (_, toFake) => {
  vi.useFakeTimers(toFake && { toFake: [...toFake] })
  const throttler = throttlerThat()
  expect([1, 2, 3].map(() => throttler.check('a').allowed)).toEqual([true, true, false])
  vi.advanceTimersByTime(60_000)
  expect(throttler.check('a').allowed).toBe(true)
  vi.useRealTimers()
  throttler.check('a')
  expect(told).toEqual([])
})

test('code that is loaded while time is faked goes by it, and by real time after', async () => {
  vi.useFakeTimers()
  await load()
  const throttler = throttlerThat()
  expect([1, 2, 3].map(() => throttler.check('a').allowed)).toEqual([true, true, false])
  vi.advanceTimersByTime(60_000)
  expect(throttler.check('a').allowed).toBe(true)
  vi.useRealTimers()
  expect(throttler.check('a').remaining).toBe(0)
  expect(told).toEqual([])
})

test('a clock of its own is no concern of fake timers', async () => {
  const { systemClock } = await import('../../src/time/clock.ts')
  const throttler = throttlerThat({ clock: { ...systemClock, monotonic: () => 5, now: () => 5, setTimeout: () => undefined } })
  vi.useFakeTimers({ toFake: ['Date'] })
  throttler.check('a')
  expect(told).toEqual([])
})

test('a store that is reached over sockets is warned of where timers are faked', async () => {
  const { backgroundStore } = await import('../../src/sync/coordinator.ts')
  vi.useFakeTimers()
  const store = backgroundStore({
    kind: 'far',
    address: 'far:1',
    open: () => ({ sync: () => new Promise(() => {}), close: async () => {} }),
  })
  const throttler = throttlerThat({ policies: [{ limit: 2, interval: '1m' }], store })
  throttler.check('a')
  throttler.check('a')
  expect(told).toEqual([expect.stringMatching(/^WEIR_WARN_FAKE_TIME: .*"far".*toFake: \['Date', 'hrtime'\]/)])
})

test('a store that is reached over sockets is warned of once timers are faked, if they are so later', async () => {
  const { backgroundStore } = await import('../../src/sync/coordinator.ts')
  const storeOf = (kind: string) =>
    backgroundStore({ kind, address: `${kind}:1`, open: () => ({ sync: () => new Promise(() => {}), close: async () => {} }) })
  const [throttler, closed] = ['far', 'closed'].map((kind) =>
    throttlerThat({ policies: [{ limit: 2, interval: '1m' }], store: storeOf(kind), closeTimeout: 0 }),
  ) as [ReturnType<typeof throttlerThat>, ReturnType<typeof throttlerThat>]
  for (const one of [throttler, closed]) one.check('a')
  await closed.close()
  vi.useFakeTimers({ toFake: ['Date', 'hrtime'] })
  throttler.check('a')
  vi.useRealTimers()
  throttler.check('a')
  expect(told).toEqual([])
  vi.useFakeTimers()
  throttler.check('a')
  throttler.check('a')
  expect(told).toEqual([expect.stringMatching(/^WEIR_WARN_FAKE_TIME: .*"far".*toFake: \['Date', 'hrtime'\]/)])
})

test('a function around the real setTimeout, as an instrumentation or a spy puts there, fakes nothing', async () => {
  const { backgroundStore } = await import('../../src/sync/coordinator.ts')
  const real = setTimeout
  vi.stubGlobal('setTimeout', (...given: Parameters<typeof setTimeout>) => real(...given))
  try {
    const store = backgroundStore({
      kind: 'far',
      address: 'far:1',
      open: () => ({ sync: () => new Promise(() => {}), close: async () => {} }),
    })
    const throttler = throttlerThat({ policies: [{ limit: 2, interval: '1m' }], store, closeTimeout: 0 })
    throttler.check('a')
    await throttler.close()
    expect(told).toEqual([])
  } finally {
    vi.unstubAllGlobals()
  }
})
