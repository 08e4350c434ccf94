import { expect, expectTypeOf, test } from 'vitest'
import { limitedFetch } from '../../src/index.ts'
import { type Node, scene } from '../support/nodes.ts'

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
  // A rejection that nothing handles fails the run.
  const key = (() => Promise.reject(new Error('no database'))) as never
  const failed = { code: 'WEIR_INVALID_KEY' }
  await expect(throttler.wrap(() => 1, { key })()).rejects.toMatchObject(failed)
  await expect(limitedFetch(throttler, { key, fetch: async () => new Response('') })('http://127.0.0.1:9')).rejects.toMatchObject(failed)
  // A handler would be too late in the next turn.
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
