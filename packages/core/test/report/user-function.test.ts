import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ask, isThenable, NoAnswer, settle, tell } from '../../src/report/user-function.ts'
import { ManualTime } from '../http/manual-time.ts'

const caught: unknown[] = []
const hear = (error: unknown) => void caught.push(error)
beforeEach(() => {
  caught.length = 0
  process.on('unhandledRejection', hear).on('uncaughtException', hear)
})
afterEach(async () => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', hear).off('uncaughtException', hear)
  expect(caught).toEqual([])
})

const boom = () => new Error('boom')
const clock = new ManualTime(0)
const patience = { clock, timeout: 50 }
const unreadable = new Proxy(
  {},
  {
    get: () => {
      throw boom()
    },
    getPrototypeOf: () => {
      throw boom()
    },
  },
)

class OwnThen extends Promise<unknown> {
  // biome-ignore lint/suspicious/noThenProperty: this is what is tested
  override then(): never {
    throw boom()
  }
}

/** The calls that a thenable makes to the functions that it receives. */
type Then = (resolve: (value?: unknown) => void, reject: (error?: unknown) => void) => unknown
const thenable = (then: Then) => ({ then })

describe('an answer that has to be waited for', () => {
  test.each<[string, () => unknown, unknown]>([
    ['a promise', () => Promise.resolve(5), 5],
    ['a promise of a promise', () => Promise.resolve(Promise.resolve(5)), 5],
    ['a promise of another realm', () => runInNewContext('Promise.resolve(5)'), 5],
    ['a foreign one that resolves at once', () => thenable((resolve) => resolve(5)), 5],
    [
      'a function with a then',
      () =>
        Object.assign(
          () => {},
          thenable((resolve) => resolve(5)),
        ),
      5,
    ],
    ['one that resolves, and then rejects, throws and returns a rejection', () => twice(), 5],
  ])('%s', async (_, make, value) => {
    const answer = ask(make, undefined)
    expect(isThenable(answer)).toBe(true)
    expect(await settle(answer as object, patience)).toEqual({ value })
  })

  test.each<[string, () => unknown, RegExp]>([
    ['a rejected promise', () => Promise.reject(boom()), /^rejected with "boom"$/],
    ['one rejected with nothing', () => Promise.reject(), /^rejected with "nothing"$/],
    ['one rejected with what can not be read', () => Promise.reject(unreadable), /^rejected with ".*can not be shown"$/],
    ['one of another realm', () => runInNewContext('Promise.reject(new Error("boom"))'), /^rejected with /],
    [
      'a foreign one that throws',
      () =>
        thenable(() => {
          throw boom()
        }),
      /^rejected with "boom"$/,
    ],
    [
      'one that rejects and then resolves',
      () =>
        thenable((resolve, reject) => {
          reject(boom())
          resolve(5)
        }),
      /^rejected with "boom"$/,
    ],
    ['one that resolves to itself', () => itself(), /^resolved to a promise$/],
    ['one that resolves to a rejection', () => thenable((resolve) => resolve(Promise.reject(boom()))), /^resolved to a promise$/],
    ['one whose then can not be read', () => unreadable, /^rejected with "boom"$/],
    ['a promise with a then of its own', () => OwnThen.reject(boom()), /^rejected with "boom"$/],
    ['one with a broken constructor', () => broken(), /^rejected with "boom"$/],
  ])('%s gives none', async (_, make, problem) => {
    const answer = ask(make, undefined)
    expect(isThenable(answer)).toBe(true)
    const { value } = await settle(answer as object, patience)
    expect(value).toBeInstanceOf(NoAnswer)
    expect((value as NoAnswer).problem).toMatch(problem)
  })

  test.each<[string, () => object]>([
    ['never resolves', () => new Promise(() => {})],
    ['resolves later', () => new Promise((resolve) => clock.setTimeout(() => resolve(5), 60))],
    ['rejects later', () => new Promise((_, reject) => clock.setTimeout(() => reject(boom()), 60))],
    ['has a then that rejects', () => thenable(() => Promise.reject(boom()))],
    [
      'calls back later, and twice',
      () =>
        thenable((resolve, reject) => {
          clock.setTimeout(() => reject(boom()), 60)
          clock.setTimeout(() => resolve(Promise.reject(boom())), 61)
        }),
    ],
  ])('one that %s gives none when its time is over', async (_, make) => {
    const settled = settle(make(), patience)
    clock.advance(50)
    const { value } = await settled
    expect((value as NoAnswer).problem).toBe('did not answer within 50 ms')
    clock.advance(20)
  })

  test('one that answers leaves no timer behind', async () => {
    const timers = new Set<unknown>()
    const counting = {
      ...patience.clock,
      now: () => 0,
      monotonic: () => 0,
      defer: () => {},
      setTimeout: () => {
        const timer = {}
        timers.add(timer)
        return timer
      },
      clearTimeout: (timer: unknown) => void timers.delete(timer),
    }
    for (const make of [() => Promise.resolve(1), () => Promise.reject(boom()), () => thenable((resolve) => resolve(1))])
      await settle(make(), { clock: counting, timeout: 50 })
    expect(timers.size).toBe(0)
  })
})

test.each<[unknown]>([[undefined], [null], [0], ['then'], [true], [5n], [Symbol('then')], [{}], [[]], [() => {}]])(
  'nothing has to be waited for with %s',
  (answer) => expect(isThenable(ask(() => answer, undefined))).toBe(false),
)

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw boom()
    },
  ],
  ['rejects', () => Promise.reject(boom())],
  ['has a then that can not be read', () => unreadable],
])('of a listener that %s it is told once', async (_, listener) => {
  const failures: string[] = []
  tell(({ problem }) => failures.push(problem), listener)
  await new Promise((resolve) => setImmediate(resolve))
  expect(failures).toEqual([expect.stringContaining('boom')])
})

function twice(): object {
  return thenable((resolve, reject) => {
    resolve(5)
    reject(boom())
    resolve(Promise.reject(boom()))
    return Promise.reject(boom())
  })
}

function itself(): object {
  const self: object = thenable((resolve) => resolve(self))
  return self
}

function broken(): object {
  const promise = Promise.resolve(5)
  Object.defineProperty(promise, 'constructor', {
    get: () => {
      throw boom()
    },
  })
  return promise
}
