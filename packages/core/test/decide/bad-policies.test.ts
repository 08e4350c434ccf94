import { describe, expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingCounter } from '../../src/algorithms/sliding-counter/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import { parsePolicies, parsePolicy } from '../../src/decide/check-policy.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { thrownBy } from '../support/nodes.ts'

const good = { limit: 100, interval: '1m' } as const
const asOptions = (options: unknown): PolicyOptions<never> => options as PolicyOptions<never>

describe('an option that cannot be used is rejected, naming it, what was given and what is allowed', () => {
  const limits = 'a number of at least 1'
  const whole = 'a whole number from 2 to 1000'
  const costs = 'a finite number > 0, or a function of the request'
  test.each([
    ['limit', 0, '0', limits],
    ['limit', 0.5, '0.5', limits],
    ['limit', -1, '-1', limits],
    ['limit', Number.NaN, 'NaN', limits],
    ['limit', Number.POSITIVE_INFINITY, 'Infinity', limits],
    ['limit', '100', '"100"', limits],
    ['limit', null, 'null', limits],
    ['limit', 100n, '100', limits],
    ['interval', 0, '0', 'from 10 ms to'],
    ['interval', 9, '9', 'from 10 ms to'],
    ['interval', '60', '"60"', 'which has no unit. Use "60s", or the number 60 for milliseconds'],
    ['interval', null, 'null', 'a number of milliseconds or a string'],
    ['interval', 29, '29', 'at least 30 ms'],
    ['spans', 1, '1', whole],
    ['spans', 0, '0', whole],
    ['spans', 2.5, '2.5', whole],
    ['spans', 1001, '1001', whole],
    ['spans', Number.NaN, 'NaN', whole],
    ['spans', Number.POSITIVE_INFINITY, 'Infinity', whole],
    ['spans', '6', '"6"', whole],
    ['spans', null, 'null', whole],
    ['cooldown', -1, '-1', 'from 0 ms to'],
    ['cooldown', '2', '"2"', 'which has no unit. Use "2s", or the number 2 for milliseconds'],
    ['cooldown', Number.POSITIVE_INFINITY, 'Infinity', 'from 0 ms to'],
    ['cooldown', null, 'null', 'from 0 ms to'],
    ['cost', 0, '0', costs],
    ['cost', -1, '-1', costs],
    ['cost', Number.NaN, 'NaN', costs],
    ['cost', Number.POSITIVE_INFINITY, 'Infinity', costs],
    ['cost', '5', '"5"', costs],
    ['cost', null, 'null', costs],
    ['cost', 101, '101', 'at most the limit, 100'],
    ['coordination', 'strict', '"strict"', '"background", "periodic", "local", "leased" or "central"'],
    ['failMode', 'fail', '"fail"', '"share" (this process\'s part of the limit), "open" (allow all) or "closed" (reject all)'],
    ['failMode', null, 'null', '"share"'],
    ['dryRun', 'yes', '"yes"', 'true or false'],
    ['dryRun', null, 'null', 'true or false'],
    ['candidate', 'yes', '"yes"', 'true or false'],
    ['name', '', '""', '1 to 64 printable ASCII characters'],
    ['name', 'naïve', '"naïve"', 'printable ASCII'],
    ['name', 'a\nb', '"a\\nb"', 'printable ASCII'],
    ['name', 'x'.repeat(65), '"xxx', '1 to 64'],
    ['name', 7, '7', 'a string'],
    ['name', null, 'null', 'a string'],
  ])('%s: %s', (option, given, shown, allowed) => {
    const error = thrownBy(() => parsePolicy(asOptions({ ...good, [option]: given }), true))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain(`"${option}"`)
    expect(error.message).toContain(shown)
    expect(error.message).toContain(allowed)
  })

  test.each([
    ['subWindows', { subWindows: 5 }],
    ['subWindows', { subWindows: 121 }],
    ['subWindows', { subWindows: 30.5 }],
    ['subWindows', { subWindows: null as never }],
    ['reopenAt', { reopenAt: 0 }],
    ['reopenAt', { reopenAt: 1.5 }],
    ['reopenAt', { reopenAt: Number.NaN }],
  ])('%s in slidingWindow(%j)', (option, options) => {
    const error = thrownBy(() => slidingWindow(options))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain(`"${option}"`)
  })

  test.each([
    ['failMode', { coordination: 'leased', failMode: 'published' }],
    ['coordination', { algorithm: slidingWindow(), coordination: 'leased' }],
    ['interval', { algorithm: slidingWindow(), interval: 100 }],
    ['coordination', { algorithm: slidingWindow(), coordination: 'periodic' }],
    ['coordination', { algorithm: slidingCounter(), coordination: 'background' }],
    ['coordination', { coordination: 'centrally' }],
    ['storeTimeout', { storeTimeout: 20 }],
    ['storeTimeout', { coordination: 'central', storeTimeout: 0 }],
    ['failMode', { coordination: 'central', failMode: 'published' }],
    ['algorithm', { algorithm: fixedWindow }],
    ['algorithm', { algorithm: 'fixedWindow' }],
    ['algorithm', { algorithm: { name: 'mine()', id: 'mine' } }],
    ['algorithm.fields', { algorithm: { ...fixedWindow(), fields: 0 } }],
    ['algorithm.fields', { algorithm: { ...fixedWindow(), fields: 1.5 } }],
    ['algorithm', { algorithm: { ...fixedWindow(), id: 'a:b' } }],
  ])('%s in %j', (option, options) => {
    const error = thrownBy(() => parsePolicy(asOptions({ ...good, ...options }), true))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain(`"${option}"`)
  })

  test('what can be had instead of a pair that there is not is said', () => {
    const { message } = thrownBy(() => parsePolicy(asOptions({ ...good, algorithm: slidingCounter() }), true))
    expect(message).toContain(
      'slidingCounter() can\'t sync in the background, the default with a store. Set "coordination" to "periodic" (counts are synced',
    )
  })

  test('counts of other nodes need a store', () => {
    const error = thrownBy(() => parsePolicy(asOptions({ ...good, coordination: 'periodic' }), false))
    expect(error.code).toBe('WEIR_MISSING_OPTION')
    expect(error.message).toContain('"store"')
  })

  test('an interval too short for its spans says how long it must be', () => {
    const { message, code } = thrownBy(() => parsePolicy({ limit: 1, interval: '99ms', spans: 20 }, true))
    expect(code).toBe('WEIR_INVALID_OPTION')
    expect(message).toContain('"interval" is "99ms"')
    expect(message).toContain('20 spans')
    expect(message).toContain('at least 100 ms')
    expect(parsePolicy({ limit: 1, interval: '100ms', spans: 20 }, true).spans).toBe(20)
  })
})

describe('a missing option is named with an example', () => {
  test.each([
    [{}, '"limit" is missing'],
    [{ limit: 100 }, '"interval" is missing'],
    [{ interval: '1m' }, '"limit" is missing'],
    [{ limit: undefined, interval: '1m' }, '"limit" is missing'],
  ])('%j', (options, text) => {
    const error = thrownBy(() => parsePolicy(asOptions(options), true))
    expect(error.code).toBe('WEIR_MISSING_OPTION')
    expect(error.message).toContain(text)
    expect(error.message).toContain('e.g.')
  })
})

describe('an unknown option is named, with the one that was most likely meant', () => {
  test.each([
    ['Limit', 'limit'],
    ['limits', 'limit'],
    ['max', 'limit'],
    ['points', 'limit'],
    ['windowMs', 'interval'],
    ['timeWindow', 'interval'],
    ['span', 'spans'],
    ['cool', 'cooldown'],
    ['blockDuration', 'cooldown'],
    ['dryrun', 'dryRun'],
    ['intervall', 'interval'],
    ['limti', 'limit'],
    ['failmode', 'failMode'],
    ['algoritm', 'algorithm'],
  ])('%s', (option, meant) => {
    const error = thrownBy(() => parsePolicy(asOptions({ ...good, [option]: 1 }), true))
    expect(error.code).toBe('WEIR_UNKNOWN_OPTION')
    expect(error.message).toContain(`"${option}"`)
    expect(error.message).toContain(`Did you mean "${meant}"?`)
  })

  test.each(['colour', 'constructor', 'toString', 'hasOwnProperty'])('%s: nothing like it, so no guess', (option) => {
    const error = thrownBy(() => parsePolicy(asOptions({ ...good, [option]: 1 }), true))
    expect(error.code).toBe('WEIR_UNKNOWN_OPTION')
    expect(error.message).not.toContain('Did you mean')
    expect(error.message).toContain('A policy has: name, limit, interval')
  })
})

describe('a list of policies', () => {
  test.each([[[]], [null], ['default'], [{ limit: 1 }]])('%j is rejected', (list) => {
    const error = thrownBy(() => parsePolicies(list as never, true))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain('"policies"')
    expect(error.message).toContain('at least one policy')
  })

  test('none at all is rejected with an example', () => {
    expect(thrownBy(() => parsePolicies(undefined as never, true)).code).toBe('WEIR_MISSING_OPTION')
  })

  test.each([[null], [7], ['fast']])('%j is no policy', (policy) => {
    const error = thrownBy(() => parsePolicies([good, policy] as never, true))
    expect(error.code).toBe('WEIR_INVALID_OPTION')
    expect(error.message).toContain('policies[1]')
  })

  test('a bad option is named with its place', () => {
    const error = thrownBy(() => parsePolicies([{ ...good, name: 'a' }, asOptions({ ...good, name: 'b', limit: 0 })], true))
    expect(error.message).toContain('"policies[1].limit" is 0')
  })

  test('two policies of one name are rejected, also by the default name', () => {
    for (const list of [
      [
        { ...good, name: 'a' },
        { ...good, name: 'a' },
      ],
      [good, { ...good, limit: 5, name: 'default' }],
    ]) {
      const error = thrownBy(() => parsePolicies(list, true))
      expect(error.code).toBe('WEIR_DUPLICATE_POLICY')
      expect(error.message).toContain(`"${(list[1] as PolicyOptions).name}"`)
    }
  })
})
