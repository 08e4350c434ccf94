import { describe, expect, test } from 'vitest'
import type { ThrottlerOptions } from '../../src/throttler/options.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { systemClock } from '../../src/time/clock.ts'
import { thrownBy } from '../support/nodes.ts'

const policies = [{ limit: 10, interval: '1s' }] as const
const make = (options: object): unknown => createThrottler(options as ThrottlerOptions)

describe('an option that cannot be used is rejected at construction', () => {
  test.each([
    ['policies', [], 'at least one policy'],
    ['store', null, 'memoryStore()'],
    ['store', {}, 'memoryStore()'],
    ['store', 'redis://:secret@localhost', 'redisStore("redis://localhost:6379")'],
    ['clock', null, 'a Clock'],
    ['clock', Date, 'a Clock'],
    ['clock', { monotonic: () => 0 }, 'setTimeout'],
    ['clock', { ...systemClock, defer: undefined }, 'defer'],
    ['random', null, 'Math.random'],
    ['random', 0.5, 'Math.random'],
    ['random', () => 1, 'from 0 to less than 1; it returned 1'],
    ['random', () => -0.1, 'it returned -0.1'],
    ['random', () => Number.NaN, 'it returned NaN'],
    ['random', () => 'x', 'it returned "x"'],
    ['maxKeys', 0, 'a whole number of at least 1'],
    ['maxKeys', 1.5, 'a whole number of at least 1'],
    ['maxKeys', Number.POSITIVE_INFINITY, 'a whole number of at least 1'],
    ['maxKeys', Number.NaN, 'a whole number of at least 1'],
    ['maxKeys', '5', 'a whole number of at least 1'],
    ['maxKeys', null, 'a whole number of at least 1'],
    ['overflow', 'drop', '"shared", "allow" or "reject"'],
    ['overflow', null, '"shared", "allow" or "reject"'],
    ['heartbeat', 99, 'from 100 ms to 10000 ms'],
    ['heartbeat', '11s', 'from 100 ms to 10000 ms'],
    ['heartbeat', null, 'from 100 ms to 10000 ms'],
    ['closeTimeout', -1, 'from 0 ms to'],
    ['closeTimeout', 'soon', 'from 0 ms to'],
    ['closeTimeout', null, 'from 0 ms to'],
  ] as readonly (readonly [string, unknown, string])[])('%s: %s', (option, given, allowed) => {
    const error = thrownBy(() => make({ policies, [option]: given }))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain(`"${option}"`)
    expect(error.message).toContain(allowed)
  })

  test.each([[null], [undefined], [7], ['options']])('%j instead of options', (options) => {
    const error = thrownBy(() => make(options as never))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain('an object such as')
  })
})

test('policies left out are asked for', () => {
  expect(thrownBy(() => make({})).code).toBe('WEIR_MISSING_OPTION')
})

test('the least and the greatest allowed values are allowed', () => {
  expect(() => make({ policies, maxKeys: 1, heartbeat: 100, closeTimeout: 0, random: () => 0 })).not.toThrow()
  expect(() => make({ policies, heartbeat: '10s' })).not.toThrow()
})

test('an unknown option is named, with the one that was meant or where it belongs', () => {
  const meant = thrownBy(() => make({ policies, policy: 1 }))
  expect(meant.code).toBe('WEIR_UNKNOWN_OPTION')
  expect(meant.message).toContain('Unknown option "policy"')

  expect(thrownBy(() => make({ policies, maxkeys: 5 })).message).toContain('Did you mean "maxKeys"?')
  expect(thrownBy(() => make({ limit: 5, interval: '1s' })).message).toContain('move it into "policies"')
  expect(thrownBy(() => make({ policies, colour: 5 })).message).toContain('A throttler has: policies, store')
})

test('no two throttlers have the same id', () => {
  const ids = Array.from({ length: 100 }, () => createThrottler({ policies }).nodeId)
  expect(new Set(ids).size).toBe(100)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}$/)
})
