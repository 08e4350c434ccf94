import { expect, onTestFinished, test, vi } from 'vitest'
import { RequestPath } from '../../src/decide/request-path.ts'
import { createThrottler, limitedFetch, type Throttler } from '../../src/index.ts'

function throttler(limit = 10): Throttler {
  const made = createThrottler({ policies: [{ limit, interval: '1m', coordination: 'local' }] })
  onTestFinished(() => made.close())
  return made
}

const MISTAKES: Readonly<Record<string, [(made: Throttler) => unknown, string]>> = {
  'schedule of a promise': [(made) => made.schedule('a', Promise.resolve() as never), 'Option "run"'],
  'schedule with its arguments the other way round': [(made) => made.schedule((() => {}) as never, 'a' as never), 'Option "run"'],
  'wrap without options': [(made) => made.wrap(() => {}, undefined as never), 'Option "key"'],
  'wrap with a key instead of options': [(made) => made.wrap(() => {}, 'a' as never), 'Option "key"'],
  'wrap with its arguments the other way round': [(made) => made.wrap({ key: 'a' } as never, (() => {}) as never), 'Option "run"'],
  'limitedFetch without a throttler': [() => limitedFetch(undefined as never), 'Option "throttler"'],
  'limitedFetch with its options first': [() => limitedFetch({ timeout: '5s' } as never), 'Option "throttler"'],
  'hold of a promise': [(made) => made.waitFor(made.checkAsync('b') as never), 'It is a promise: await it.'],
  'acquire without its options, as null': [(made) => made.acquire('a', null as never), 'Option "options"'],
}

test.each(Object.keys(MISTAKES))('a mistake is told at the call, and takes nothing: %s', async (name) => {
  const [call, message] = MISTAKES[name] as (typeof MISTAKES)[string]
  const made = throttler()
  const called = expect((async () => await call(made))()).rejects.toThrow(message)
  expect(made.waiting).toBe(0)
  await called
  expect(made.peek('a').remaining).toBe(10)
})

test('to ask how many wait after each of the first calls looks at each of them a few times at most', async () => {
  const made = throttler(2_000)
  const look = vi.spyOn(RequestPath.prototype, 'look')
  onTestFinished(() => look.mockRestore())
  const all: Promise<unknown>[] = []
  for (let call = 0; call < 1_000; call++) {
    all.push(made.acquire('a'))
    expect(made.waiting).toBe(0)
  }
  // All of them again after a while; at each call it would be 500,500.
  expect(look.mock.calls.length).toBeLessThan(100_000)
  await Promise.all(all)
})

const URL = 'http://127.0.0.1/'

test.each([
  ['no answer', undefined],
  ['without headers', { status: 200, json: async () => ({}) }],
  ['with headers that are an object', { status: 429, headers: { 'retry-after': '5' } }],
])('limitedFetch hands over what stands in for an answer: %s', async (_, answer) => {
  const get = limitedFetch(throttler(), { fetch: (async () => answer) as never })
  expect(await get(URL)).toBe(answer)
})

test('limitedFetch takes requests of other packages, and a signal that is null as fetch does', async () => {
  const made = throttler()
  const asked: unknown[] = []
  const get = limitedFetch(made, {
    fetch: async (input) => {
      asked.push(input)
      return new Response('x')
    },
  })
  const foreign = { url: URL, method: 'GET' } as unknown as Request
  await get(foreign)
  await get(new Request(URL, { signal: AbortSignal.abort() }), { signal: null })
  expect(asked).toHaveLength(2)
  expect(asked[0]).toBe(foreign)
  expect(made.peek('127.0.0.1').remaining).toBe(8)
})
