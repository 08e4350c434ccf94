import { strict as assert } from 'node:assert'
import type { RulesSource } from '@weir/core/rules'
import type { TestRunner } from '../store-contract/store-contract.ts'

/** A place that stores rules, for one case. */
export interface RulesSourceFixture {
  /** Makes a source at that place. Each call makes another one, as in another process. */
  source(): RulesSource
  /** Writes this text to the place, as any other writer would. */
  put(text: string): Promise<void> | void
  /** Makes the place unavailable to all sources. */
  goAway(): Promise<void> | void
  close(): Promise<void> | void
}

/** Milliseconds that a case waits for an event, enough for a busy machine. */
const PATIENCE = 30_000
/** Milliseconds between two checks. */
const PAUSE = 10

/** Texts that a source must return unchanged. */
const TEXTS: readonly string[] = [
  '{ "version": 1 }',
  'version: 1 # ä 日本 \u{1f600}\r\n\ttabs, "quotes", \\ and %s',
  `version: 2\n${'# a long line that makes the document larger than a packet\n'.repeat(20_000)}`,
]

interface Case {
  readonly title: string
  run(fixture: RulesSourceFixture): Promise<void>
}

const cases: readonly Case[] = [
  {
    title: 'holds nothing at first, or can not be read: it makes nothing up',
    run: async ({ source }) => {
      const text = await read(source()).catch(() => undefined)
      assert.equal(text, undefined)
    },
  },
  {
    title: 'gives back each text as it was put there, to everybody',
    run: async ({ source, put }) => {
      const sources = [source(), source()]
      for (const text of TEXTS) {
        await put(text)
        for (const one of sources) assert.equal(await read(one), text)
      }
    },
  },
  {
    title: 'says how often it is read, and what it is, on one line',
    run: async ({ source }) => {
      const { interval, settle = 0, name } = source()
      assert.ok(interval >= 100, 'interval is at least 100 ms')
      assert.ok(settle >= 0, 'settle is at least 0 ms')
      assert.match(name, /^\P{Cc}{1,500}$/u)
    },
  },
  {
    title: 'tells of a change, where it watches, and of none after the end',
    run: async ({ source, put }) => {
      await put('1')
      const watching = source()
      if (watching.watch === undefined) return
      let told = 0
      const off = watching.watch(() => told++)
      try {
        await read(watching)
        let version = 1
        // The source may need a moment before it listens, and miss a first change.
        await until(async () => {
          await put(String(++version))
          return within(500, () => told > 0)
        }, 'a change is told of')
        assert.equal(await read(watching), String(version))
      } finally {
        off()
      }
      const before = told
      await put('other')
      await within(200, () => false)
      assert.equal(told, before)
    },
  },
  {
    title: 'replaces what is expected only, once, where it replaces',
    run: async ({ source, put }) => {
      const writers = Array.from({ length: 5 }, source)
      if (writers[0]?.replace === undefined) return
      await put('first')
      const outcomes = await Promise.all(
        writers.map((writer, i) => (writer.replace as NonNullable<RulesSource['replace']>)('first', `by ${i}`).catch(() => false)),
      )
      assert.equal(outcomes.filter((won) => won).length, 1, `one of five wins: ${outcomes.join(' ')}`)
      assert.equal(await read(source()), `by ${outcomes.indexOf(true)}`)
      assert.equal(await writers[0].replace('first', 'late'), false)
      assert.equal(await writers[0].replace(undefined, 'late'), false)
    },
  },
  {
    title: 'remembers what it held, the newest first, where it has a history',
    run: async ({ source }) => {
      const one = source()
      if (one.history === undefined || one.replace === undefined) return
      let before: string | undefined
      for (const text of ['1', '2', '3', '1']) {
        assert.equal(await one.replace(before, text), true)
        before = text
      }
      assert.deepEqual(await one.history(10), ['1', '3', '2', '1'])
      assert.deepEqual(await one.history(2), ['1', '3'])
    },
  },
  {
    title: 'rejects what can not be read, instead of holding nothing, and does not end the process',
    run: async ({ source, put, goAway }) => {
      const one = source()
      await put('1')
      assert.equal(await read(one), '1')
      await goAway()
      const abort = new AbortController()
      const reading = one.read(abort.signal)
      const timer = setTimeout(() => abort.abort(), 2_000)
      // A source that respects the signal, or gives up by itself, rejects. Users of a source don't wait for a hung one.
      const outcome = await Promise.race([reading.catch((error: unknown) => ({ error })), within(5_000, () => false).then(() => 'hangs')])
      clearTimeout(timer)
      assert.equal(typeof outcome, 'object', `it must not answer ${String(outcome)}`)
    },
  },
]

/**
 * The test suite of the `RulesSource` interface, for your own sources. Each case gets its own empty place.
 *
 * @example
 * ```ts
 * import { describe, test } from 'vitest'
 *
 * rulesSourceContract('my source', async () => {
 *   const place = await startMine()
 *   return { source: () => mySource(place.url), put: (text) => place.put(text), goAway: () => place.stop(), close: () => place.stop() }
 * }, { describe, test })
 * ```
 *
 * @param name - the name of the source, for the titles of the tests
 */
export function rulesSourceContract(
  name: string,
  factory: () => RulesSourceFixture | Promise<RulesSourceFixture>,
  { describe, test }: TestRunner,
): void {
  describe(`${name} keeps the contract of sources of rules`, () => {
    for (const { title, run } of cases) {
      test(
        title,
        async () => {
          const fixture = await factory()
          try {
            await run(fixture)
          } finally {
            await fixture.close()
          }
        },
        2 * PATIENCE,
      )
    }
  })
}

function read(source: RulesSource): Promise<string | undefined> {
  return source.read(new AbortController().signal)
}

async function until(done: () => Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + PATIENCE
  while (!(await done())) assert.ok(Date.now() < end, `${what} within ${PATIENCE} ms`)
}

/** Whether `done` becomes true within this many milliseconds. */
async function within(time: number, done: () => boolean): Promise<boolean> {
  for (let waited = 0; waited < time && !done(); waited += PAUSE) await new Promise((resolve) => setTimeout(resolve, PAUSE))
  return done()
}
