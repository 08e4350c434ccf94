import { afterEach, expect, test, vi } from 'vitest'
import { scene } from '../support/nodes.ts'

afterEach(() => {
  vi.doUnmock('../../src/throttler/open-queues.ts')
  vi.doUnmock('../../src/throttler/delays.ts')
})

/** Mocks a file: its code is loaded, but returned only when `open` is called. */
function held(file: string): { ready: boolean; open(): void } {
  let resolve = (): void => {}
  const gate = new Promise<void>((done) => {
    resolve = done
  })
  const one = { ready: false, open: () => resolve() }
  vi.doMock(file, async (original) => {
    const code = await original()
    one.ready = true
    await gate
    return code
  })
  return one
}

// Other promises settle between the moment when the code is loaded and the moment when the waiting calls continue.
test.each([
  ['acquire', { limit: 3, interval: '1s', coordination: 'local' }],
  ['checkAsync', { limit: 3, interval: '1s', coordination: 'local', delay: '1m' }],
] as const)(
  'requests that come just when the code that lets them wait is loaded go behind those that waited for it: %s',
  async (call, policy) => {
    const code = [held('../../src/throttler/open-queues.ts'), ...(call === 'checkAsync' ? [held('../../src/throttler/delays.ts')] : [])]
    const here = scene()
    const node = here.node(policy as never, { alone: true, queue: { maxWait: '60s', maxWaitingPerKey: 1_000 } })
    node.start()
    const went: number[] = []
    let came = 0
    const come = (): void => {
      const number = came++
      const request = call === 'acquire' ? node.acquire('a') : node.checkAsync('a')
      void request.then(
        ({ allowed }) => {
          if (allowed) went.push(number)
        },
        () => {},
      )
    }
    for (let i = 0; i < 5; i++) come()
    await vi.waitFor(() => expect(code.map(({ ready }) => ready)).not.toContain(false), { timeout: 30_000, interval: 1 })
    for (const { open } of code) open()
    // Makes a request in each microtask, until long after the code is loaded.
    for (let turn = 0; turn < 20; turn++) {
      for (let i = 0; i < 15; i++) {
        await null
        come()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    await vi.dynamicImportSettled()
    await here.world.run(58_000)
    expect(went.length).toBeGreaterThan(150)
    expect(went).toEqual(went.toSorted((one, other) => one - other))
    expect(went[0]).toBe(0)
    await here.close()
  },
)
