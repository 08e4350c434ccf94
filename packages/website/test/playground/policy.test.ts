import * as core from '@weir/core'
import * as testing from '@weir/testing'
import { describe, expect, test, vi } from 'vitest'
import type { PolicyOutcome } from '../../src/playground/runs/policy.ts'
import { readOptions } from '../../src/playground/runs/read-options.ts'
import { run } from '../../src/playground/runs/run.ts'
import { settingsOf } from '../../src/playground/settings/settings.ts'

vi.setConfig({ testTimeout: 60_000 })

async function outcomeOf(options: string, more: Readonly<Record<string, unknown>> = {}): Promise<PolicyOutcome> {
  return (await run(settingsOf('policy', { options, nodes: 3, load: 2, ...more }))) as PolicyOutcome
}

describe('options that are pasted', () => {
  test('are read as a program would', () => {
    const text = `{
      // a comment
      "name": 'api', limit: 6 * 10, interval: \`1m\`,
      algorithm: tokenBucket({ burst: 20, warmUp: '10s' }), // another one
      cooldown: escalating({ base: '1m', max: '1h' }),
    };,
`
    expect(Object.keys(readOptions(text))).toEqual(['name', 'limit', 'interval', 'algorithm', 'cooldown'])
    expect(readOptions('{ limit: -1 }')).toEqual({ limit: -1 })
  })

  test.each([
    ['globalThis', /has no value here/],
    ['{ limit: fetch("https://example.com") }', /Only these are called/],
    ['{ limit: tokenBucket.constructor("return 1")() }', /Only these are called/],
    ['{ limit: (0, eval)("1") }', /Only these are called/],
    ['{ limit: () => 3 }', /Your functions/],
    ['{ limit() { return 3 } }', /Your functions/],
    ['{ get limit() { return 3 } }', /Only plain options/],
    ['{ ...globalThis }', /Only plain options/],
    ['{ ["limit"]: 3 }', /Only plain options/],
    ['{ limit: 3 }, alert(1)', /Remove the text after it/],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what is pasted
    ['{ limit: `${1}` }', /Only plain values/],
    ['{ limit: new Date() }', /Only plain values/],
    ['{ limit: 3', /no JavaScript/],
    ['[]', /are an object/],
    ['tokenBucket()', /are an object/],
    ['', /no JavaScript/],
  ])('are never run: %s', (text, message) => {
    expect(() => readOptions(text)).toThrow(message)
  })

  test('can not reach prototypes', () => {
    readOptions('{ "__proto__": { polluted: true }, constructor: { prototype: { polluted: true } } }')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test.each([
    ["{ limit: 0.5, interval: '1m' }", /limit/],
    ["{ limit: 10, intervall: '1m' }", /interval/],
    ["{ limit: 10, interval: '1m', algorithm: slidingLog(), coordination: 'background' }", /slidingLog/],
    ["{ limit: 10, interval: '1m', algorithm: tokenBucket({ burst: 0 }) }", /burst/],
    ["{ limit: 10, interval: '1m', coordination: 'central' }", /nothing to simulate/],
    ["{ limit: 10, algorithm: concurrency(), coordination: 'local' }", /in flight/],
    ["{ limit: 10, interval: calendar('month') }", /one length/],
    ["{ limit: 1e8, interval: '1m' }", /more than a page/],
    ["{ limit: 100, interval: '1d' }", /too long/],
  ])('get the answer that they would get at the start of a program: %s', async (options, message) => {
    await expect(outcomeOf(options)).rejects.toThrow(message)
  })
})

describe.each([
  ["{ limit: 100, interval: '10s' }", 'overshoot'],
  ["{ limit: 100, interval: '10s', algorithm: slidingWindow() }", 'worstWindow'],
  ["{ limit: 100, interval: '10s', algorithm: tokenBucket({ burst: 40 }) }", 'debt'],
  ["{ limit: 100, interval: '10s', coordination: 'leased', storeTimeout: '1s' }", 'overshoot'],
])('the test to copy, of %s', (options, yardstick) => {
  test('passes, and fails where the limit is exceeded by more', async () => {
    const outcome = await outcomeOf(options, { rtt: 80, load: 4, balancing: 'zipf' })
    expect(outcome.yardstick).toBe(yardstick)
    await passes(outcome.test)
    expect(outcome.agreement).toContain('100 requests per 10 s')
    if (outcome.exceeded.max === 0) return
    const tighter = outcome.test.replace(/(\.max\)\.toBeLessThanOrEqual\()[\d.]+/, `$1${outcome.exceeded.max * 0.99}`)
    await expect(passes(tighter)).rejects.toThrow(/less than or equal/)
  })
})

test('a log says who would be rejected', async () => {
  const line = (client: string, second: number) =>
    `${client} - - [10/Oct/2025:13:55:${String(second).padStart(2, '0')} +0000] "GET /a HTTP/1.1" 200 12 "-" "curl"`
  const log = [...Array.from({ length: 30 }, (_, index) => line('10.0.0.1', index)), line('10.0.0.2', 3), 'nonsense', ''].join('\n')
  const outcome = await outcomeOf("{ limit: 12, interval: '1m' }", { log })
  expect(outcome.log).toEqual({
    lines: 32,
    requests: 31,
    rejected: 18,
    clients: 2,
    worst: [{ client: '10.0.0.1', requests: 30, rejected: 18 }],
  })
  expect((await outcomeOf("{ limit: 12, interval: '1m' }", { log: 'nothing\n' })).log).toMatchObject({ lines: 1, requests: 0 })
  expect((await outcomeOf("{ limit: 12, interval: '1m' }", { log: '\n' })).log).toBeUndefined()
})

/** Runs the text of a test, with values instead of its imports, and waits for its end. */
async function passes(text: string): Promise<void> {
  let body: (() => Promise<void>) | undefined
  // Only the check, because `expectSimulation` would also search for the shortest failing run.
  const expectSimulation: typeof testing.expectSimulation = async (scenario, check) => {
    const result = await testing.simulate(scenario)
    check(result)
    return result
  }
  const names = { ...core, ...testing, expectSimulation, expect, test: (_name: string, run: () => Promise<void>) => (body = run) }
  const code = text.replace(/^import .*$/gm, '')
  new Function(...Object.keys(names), code)(...Object.values(names))
  await body?.()
}
