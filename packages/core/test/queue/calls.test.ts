import { expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { RequestPath } from '../../src/decide/request-path.ts'
import { createThrottler, limitedFetch, type Throttler } from '../../src/index.ts'
import { type Node, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const LOCAL = { limit: 2, interval: 1_000, coordination: 'local' } as const

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

const URL = 'http://127.0.0.1/'

function node(): Node {
  return scene().node({ limit: 1_000, interval: 1_000, coordination: 'local' }, { alone: true })
}

class Api {
  static readonly region = 'eu'
  readonly host = 'api.example.com'

  get(path: string): string {
    return `${this.host}/${path}`
  }

  async later(path: string): Promise<string> {
    return `${this.host}/${path} later`
  }

  *pages(count: number): Generator<string> {
    for (let i = 1; i <= count; i++) yield `${this.host}/${i}`
  }

  async *feed(count: number): AsyncGenerator<string> {
    for (let i = 1; i <= count; i++) yield `${this.host}/${i}`
  }
}

function where(this: { region: string }, name: string): string {
  return `${name} in ${this.region}`
}

test('schedule runs a function in its turn, wrap makes one that waits', async () => {
  const it = scene()
  const node = it.node({ ...LOCAL, limit: 1 })
  await waiting(it, node)
  const ran: string[] = []
  const double = node.wrap(
    (user: string, n: number) => {
      ran.push(`${user} at ${it.world.time}`)
      return 2 * n
    },
    { key: (user) => user, timeout: '5s' },
  )
  const results = Promise.all([double('a', 1), double('a', 2), double('b', 3), node.schedule('b', async () => 'done')])
  await it.world.run(2_000)
  expect(await results).toEqual([2, 4, 6, 'done'])
  expect(ran).toEqual(['a at 0', 'b at 0', 'a at 1000'])
  await expect(node.schedule('c', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await it.close()
})

test.each([
  [{ timeout: -1 }, 'Option "timeout" is -1'],
  [{ timeout: Number.NaN }, 'Option "timeout" is NaN'],
  [{ priority: 1 }, 'Option "priority" is 1'],
  [{ priority: 'urgent' }, '"critical"'],
  [{ signal: {} }, 'Option "signal"'],
  [{ timeOut: 5 }, 'Did you mean "timeout"?'],
  [7, 'Option "options" is 7'],
])('bad options are rejected by name: %j', async (options, message) => {
  const it = scene()
  const node = it.node(LOCAL)
  await expect(node.acquire('a', options as never)).rejects.toThrow(message)
  await expect(node.acquire(7 as never)).rejects.toThrow('A key must be a string')
})

test.each([
  [{ maxWaiting: 0 }, 'Option "queue.maxWaiting" is 0'],
  [{ maxWaitingPerKey: 1.5 }, 'Option "queue.maxWaitingPerKey" is 1.5'],
  [{ maxWait: '60' }, 'Option "queue.maxWait" is "60"'],
  [{ onClose: 'wait' }, 'Option "queue.onClose" is "wait"'],
  [{ maxwait: 1 }, 'Did you mean "maxWait"?'],
  [null, 'Option "queue" is null'],
])('so are those of the queue: %j', (queue, message) => {
  expect(() => scene().node(LOCAL, { queue: queue as never })).toThrow(message)
})

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
  // All requests are checked again after a while. With a check at each call there would be 500,500.
  expect(look.mock.calls.length).toBeLessThan(100_000)
  await Promise.all(all)
})

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

test('a wrapped function gets the this that it is called with, whatever kind of function it is', async () => {
  const throttler = node()
  class Wrapped extends Api {}
  const wrap = (name: 'get' | 'later' | 'pages' | 'feed'): void => {
    Object.defineProperty(Wrapped.prototype, name, {
      value: throttler.wrap(Api.prototype[name] as (count: unknown) => unknown, { key: 'a' }),
    })
  }
  for (const name of ['get', 'later', 'pages', 'feed'] as const) wrap(name)
  const api = new Wrapped()
  expect(await api.get('x')).toBe('api.example.com/x')
  expect(await api.later('x')).toBe('api.example.com/x later')
  expect([...(await (api.pages(2) as unknown as Promise<Generator<string>>))]).toEqual(['api.example.com/1', 'api.example.com/2'])
  const feed: string[] = []
  for await (const page of await (api.feed(2) as unknown as Promise<AsyncGenerator<string>>)) feed.push(page)
  expect(feed).toEqual(['api.example.com/1', 'api.example.com/2'])
  expect(await throttler.wrap(where, { key: 'a' }).call(Api, 'it')).toBe('it in eu')
  const literal = {
    unit: 'ms',
    show: throttler.wrap(
      async function (this: { unit: string }, n: number) {
        return `${n} ${this.unit}`
      },
      { key: 'a' },
    ),
  }
  expect(await literal.show(5)).toBe('5 ms')
  await throttler.close()
})

test('the key of a wrapped function is told by the same this and arguments', async () => {
  const throttler = node()
  const api = {
    host: 'b',
    get: throttler.wrap(
      function (this: { host: string }, path: string) {
        return `${this.host}/${path}`
      },
      {
        key(path) {
          return `${this.host} ${path}`
        },
      },
    ),
  }
  expect(await api.get('x')).toBe('b/x')
  expect(throttler.peek('b x').remaining).toBe(999)
  await throttler.close()
})

test('a key function whose promise is rejected fails the call, and does not end the process', async () => {
  const throttler = node()
  // A rejection without a handler fails the run.
  const key = (() => Promise.reject(new Error('no database'))) as never
  const failed = { code: 'WEIR_INVALID_KEY' }
  await expect(throttler.wrap(() => 1, { key })()).rejects.toMatchObject(failed)
  await expect(limitedFetch(throttler, { key, fetch: async () => new Response('') })('http://127.0.0.1:9')).rejects.toMatchObject(failed)
  // A handler that is added in the next turn would be too late.
  await new Promise((resolve) => setTimeout(resolve, 5))
  await throttler.close()
})

test('a wrapped function has the name and number of parameters of its own, and its types', async () => {
  const throttler = node()
  function send(this: Api, to: string, _text: string): number {
    return to.length
  }
  const wrapped = throttler.wrap(send, { key: (to) => to })
  expect([wrapped.name, wrapped.length]).toEqual(['send', 2])
  expectTypeOf(wrapped).toEqualTypeOf<(this: Api, to: string, text: string) => Promise<number>>()
  const plain = throttler.wrap((n: number) => n + 1, { key: 'a' })
  expectTypeOf(plain).toEqualTypeOf<(this: unknown, n: number) => Promise<number>>()
  // A function without `this` may be called without one.
  expect(await plain(1)).toBe(2)
  expectTypeOf(throttler.wrap<[string], number>((text) => text.length, { key: (text) => text })).toBeCallableWith('a')
  await throttler.close()
})

test('the fetch of limitedFetch gets the this that it is called with', async () => {
  const throttler = node()
  const client = {
    token: 't',
    async fetch(this: { token: string }): Promise<Response> {
      return new Response(this.token)
    },
  }
  const limited = { token: 'u', fetch: limitedFetch(throttler, { fetch: client.fetch as typeof fetch }) }
  expect(await (await limited.fetch('http://a')).text()).toBe('u')
  await throttler.close()
})
