import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { concurrency } from '../../src/algorithms/concurrency/index.ts'
import type { RequestPolicyOptions } from '../../src/decide/policy.ts'
import { createGuard } from '../../src/http/guard.ts'
import { handlerStarts } from '../../src/http/handler-end.ts'
import type { Answering } from '../../src/report/when-ended.ts'
import { type FakeRequest, fakeReader } from './fake-request.ts'
import { ManualTime } from './manual-time.ts'

const FLIGHT = { name: 'flight', key: 'all', limit: 1, algorithm: concurrency(), coordination: 'local' } as const

function start(...policies: object[]) {
  const options = { policies: policies as RequestPolicyOptions<FakeRequest>[], clock: new ManualTime(0) }
  const guard = createGuard<FakeRequest, readonly [FakeRequest]>(options, fakeReader)
  return { guard, free: () => guard.throttler.peek('all').parts.map(({ remaining }) => remaining) }
}

/** A minimal response. */
function response(): EventEmitter & Answering {
  return new EventEmitter() as EventEmitter & Answering
}

function close(answering: Answering): void {
  Object.assign(answering, { destroyed: true })
  answering.emit('close')
}

describe('a slot is free once the response and all reported handlers have ended', () => {
  test('whichever ends first', () => {
    const { guard, free } = start(FLIGHT)
    for (const order of ['response first', 'handler first']) {
      const answering = response()
      guard.check({}, undefined, answering)
      const ended = handlerStarts(answering)
      if (order === 'response first') close(answering)
      else ended?.()
      expect(free(), order).toEqual([0])
      if (order === 'response first') ended?.()
      else close(answering)
      expect(free(), order).toEqual([1])
      // A second call changes nothing, although another request has the slot by now.
      const next = response()
      guard.check({}, undefined, next)
      ended?.()
      close(answering)
      expect(free(), order).toEqual([0])
      close(next)
    }
  })

  test('of handlers inside each other each, in any order', () => {
    const { guard, free } = start(FLIGHT)
    const answering = response()
    guard.check({}, undefined, answering)
    const [outer, inner] = [handlerStarts(answering), handlerStarts(answering)]
    close(answering)
    outer?.()
    outer?.()
    expect(free()).toEqual([0])
    inner?.()
    expect(free()).toEqual([1])
  })

  test('of guards in several places each', () => {
    const [one, two] = [start(FLIGHT), start(FLIGHT)]
    const answering = response()
    one.guard.check({}, undefined, answering)
    const outer = handlerStarts(answering)
    two.guard.check({}, undefined, answering)
    const inner = handlerStarts(answering)
    close(answering)
    inner?.()
    expect([...one.free(), ...two.free()]).toEqual([0, 0])
    outer?.()
    expect([...one.free(), ...two.free()]).toEqual([1, 1])
  })

  test('and with the response alone where no handler is reported', () => {
    const { guard, free } = start(FLIGHT)
    const answering = response()
    guard.check({}, undefined, answering)
    expect(free()).toEqual([0])
    close(answering)
    expect(free()).toEqual([1])
  })
})

describe('no handler starts once the client has left', () => {
  test('before the decision: it is null, the slot is free, and other units are counted', () => {
    const rate = { name: 'rate', key: 'all', limit: 9, interval: '1h', coordination: 'local' }
    const { guard, free } = start(FLIGHT, rate)
    const answering = response()
    close(answering)
    expect(guard.check({}, undefined, answering)).toBeNull()
    expect(free()).toEqual([1, 8])
    expect(handlerStarts(answering)).toBeNull()
  })

  test('between the decision and the handler', () => {
    const { guard, free } = start(FLIGHT)
    const answering = response()
    guard.check({}, undefined, answering)
    close(answering)
    expect(handlerStarts(answering)).toBeNull()
    expect(free()).toEqual([1])
  })

  test('unless the policy says releaseOn: "response", or has no slots', () => {
    for (const policy of [
      { ...FLIGHT, algorithm: concurrency({ releaseOn: 'response' }) },
      { key: 'all', limit: 9, interval: '1h', coordination: 'local' },
    ]) {
      const answering = response()
      const { guard } = start(policy)
      close(answering)
      expect(guard.check({}, undefined, answering)).toMatchObject({ allowed: true })
      expect(handlerStarts(answering)).toBeUndefined()
    }
  })
})

test('a value of releaseOn that there is not is rejected', () => {
  expect(() => concurrency({ releaseOn: 'connection' as never })).toThrow(
    expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringContaining('"handler" or "response"') }),
  )
})
