import { gzipSync } from 'node:zlib'
import * as core from '@weir/core'
import * as testing from '@weir/testing'
import { describe, expect, test, vi } from 'vitest'
import type { PolicyOutcome } from '../../src/playground/runs/policy.ts'
import { readOptions } from '../../src/playground/runs/read-options.ts'
import { type LogOutcome, replayLog } from '../../src/playground/runs/replay-log.ts'
import { run } from '../../src/playground/runs/run.ts'
import { settingsOf } from '../../src/playground/settings/settings.ts'
import { logAnswer, logCut, logTable } from '../../src/playground/tables/tables.ts'

vi.setConfig({ testTimeout: 60_000 })

async function outcomeOf(
  options: string,
  more: Readonly<Record<string, unknown>> = {},
  logs: readonly Blob[] = [],
): Promise<PolicyOutcome> {
  return (await run(settingsOf('policy', { options, nodes: 3, load: 2, ...more }), logs)) as PolicyOutcome
}

describe('pasted options', () => {
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
  ])('are checked as at the start of a program: %s', async (options, message) => {
    await expect(outcomeOf(options)).rejects.toThrow(message)
  })
})

describe.each([
  ["{ limit: 100, interval: '10s' }", 'overshoot'],
  ["{ limit: 100, interval: '10s', algorithm: slidingWindow() }", 'worstWindow'],
  ["{ limit: 100, interval: '10s', algorithm: tokenBucket({ burst: 40 }) }", 'debt'],
  ["{ limit: 100, interval: '10s', coordination: 'leased', storeTimeout: '1s' }", 'overshoot'],
])('the test to copy, of %s', (options, yardstick) => {
  test('passes, and fails with a smaller overshoot', async () => {
    const outcome = await outcomeOf(options, { rtt: 80, load: 4, balancing: 'zipf' })
    expect(outcome.yardstick).toBe(yardstick)
    await passes(outcome.test)
    expect(outcome.agreement).toContain('100 requests per 10 s')
    if (outcome.exceeded.max === 0) return
    const tighter = outcome.test.replace(/(\.max\)\.toBeLessThanOrEqual\()[\d.]+/, `$1${outcome.exceeded.max * 0.99}`)
    await expect(passes(tighter)).rejects.toThrow(/less than or equal/)
  })
})

describe('an access log', () => {
  const line = (client: string, second: number) =>
    `${client} - - [10/Oct/2025:13:55:${String(second).padStart(2, '0')} +0000] "GET /a HTTP/1.1" 200 12 "-" "curl"`
  const log = [...Array.from({ length: 30 }, (_, index) => line('10.0.0.1', index)), line('10.0.0.2', 3), 'nonsense', ''].join('\n')
  const minute = { limit: 12, interval: '1m' } as const
  const replayed = (log: string | NodeJS.ArrayBufferView<ArrayBuffer>, most?: number) => replayLog(minute, [new Blob([log])], most)

  test('lists the clients that the policy would reject', async () => {
    const found = {
      lines: 32,
      replayed: 32,
      requests: 31,
      rejected: 18,
      clients: 2,
      limited: 1,
      worst: [{ client: '10.0.0.1', requests: 30, rejected: 18 }],
    }
    expect((await outcomeOf("{ limit: 12, interval: '1m' }", {}, [new Blob([log])])).log).toEqual(found)
    expect(await replayed(gzipSync(log))).toEqual(found)
    // The same lines in two files, the later ones first.
    const halves = [log.split('\n').slice(10).join('\n'), gzipSync(log.split('\n').slice(0, 10).join('\n'))]
    expect(
      await replayLog(
        minute,
        halves.map((half) => new Blob([half])),
      ),
    ).toEqual(found)
    // No request waits in the replay, so the timeout is left out.
    const leased = { ...minute, coordination: 'leased', storeTimeout: '1s' } as const
    expect(await replayLog(leased, [new Blob([log])])).toEqual(found)
  })

  test('counts the rejections of a dry run, and each client apart, however many there are', async () => {
    expect(await replayLog({ ...minute, dryRun: true }, [new Blob([log])])).toMatchObject({ rejected: 18 })
    const many = Array.from({ length: 250_100 }, (_, client) => `c${client} - - [10/Oct/2025:13:55:00 +0000] "-" 400 0`).join('\n')
    expect(await replayLog(minute, [new Blob([many])])).toMatchObject({ clients: 250_100, rejected: 0 })
    await expect(replayLog({ ...minute, delay: '1s' }, [new Blob([log])])).rejects.toThrow('Remove "delay" or the log')
  })

  test('begins with its answer', async () => {
    const answer = async (text: string) => logAnswer((await replayed(text)) as LogOutcome)
    expect(await answer(log)).toBe('Rejects 18 of 31 requests (58 %), from 1 of 2 clients.')
    expect(await answer(line('10.0.0.1', 1))).toBe('Rejects none of 1 request from 1 client.')
    expect(await answer('nothing\n')).toBe('No request in 1 line. The page reads the Common and the Combined Log Format.')
    expect(await replayed('\n')).toBeUndefined()
  })

  test('is cut with a note', async () => {
    const cut = (await replayed(log, 20)) as LogOutcome
    expect(cut).toMatchObject({ lines: 32, replayed: 20, requests: 20, rejected: 8 })
    expect(logCut(cut)).toContain('only the first 20 of 32 lines were replayed')
    expect(logCut((await replayed(log)) as LogOutcome)).toBeUndefined()
    const many = Array.from({ length: 25 }, (_, client) => `${line(`10.0.1.${client}`, 1)}\n`.repeat(13)).join('')
    const table = logTable((await replayed(many)) as LogOutcome)
    expect(table.rows).toHaveLength(20)
    expect(table.caption).toContain('The 20 clients with the most rejections, of 25')
  })

  test('is replayed without its pauses: three requests at noon on each day of a year', async () => {
    const days = Array.from({ length: 365 }, (_, day) => new Date(Date.UTC(2025, 0, 1 + day)).toUTCString().split(' '))
    const year = days.map(([, day, month, year]) =>
      `10.0.0.1 - - [${day}/${month}/${year}:12:00:00 +0000] "GET / HTTP/1.1" 200 12\n`.repeat(3),
    )
    expect(await replayLog({ limit: 2, interval: '1s' }, [new Blob(year)])).toMatchObject({ requests: 1095, rejected: 365 })
  })

  test('is read even if a line is endless, and fails if the file is damaged', async () => {
    expect(await replayed(`${'x'.repeat(300_000)}\n${line('10.0.0.1', 1)}`)).toMatchObject({ lines: 2, requests: 1 })
    await expect(replayed(gzipSync(log).subarray(0, 60))).rejects.toThrow(/can't be read.*decompress it first/)
  })
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
