import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { invalidOption, WeirError, warnProcess } from '../../src/report/errors.ts'
import { Once } from '../../src/report/once.ts'
import { printable, reasonOf, show, stackOf } from '../../src/report/show.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import { createThrottler } from '../../src/throttler/throttler.ts'
import { ManualTime } from '../http/manual-time.ts'

/** Characters that control a terminal, end a line, are invisible or change the direction of writing. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
const HOSTILE = 'a\r\nb\t\u001b[2J\u0007\u009b31m\u202e\u2066\u2028\u2029\u0085\ufeff\u200b\ud800'

const throwing = () => {
  throw new Error(HOSTILE)
}
const revoked = Proxy.revocable({}, {})
revoked.revoke()
const revokedFunction = Proxy.revocable(() => {}, {})
revokedFunction.revoke()

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: fc.constantFrom(...HOSTILE, 'x', '"', '\\'), maxLength: 300 }),
  fc.constant('x'.repeat(5_000_000)),
)
// The arbitraries choose from this list by index, because the generator itself would fail at such values.
const hostile: readonly unknown[] = [
  revoked.proxy,
  revokedFunction.proxy,
  new Proxy({}, { get: throwing, getPrototypeOf: throwing, ownKeys: throwing, has: throwing }),
  new Proxy([], { get: throwing }),
  { toString: throwing, toJSON: throwing, [Symbol.toPrimitive]: throwing },
  Object.create(null),
  Object.create({
    get [Symbol.toStringTag](): string {
      throw new Error(HOSTILE)
    },
  }),
  {
    get a(): never {
      throw new Error(HOSTILE)
    },
  },
  Object.defineProperty(() => {}, 'name', { get: throwing }),
  Object.defineProperty(() => {}, 'name', { value: HOSTILE }),
  Object.defineProperty(new Error('x'), 'message', { get: throwing }),
  Object.defineProperty(new Error('x'), 'message', { value: { toString: throwing } }),
  Object.defineProperty(new Error('x'), 'stack', { get: throwing }),
  Object.assign(new Error(HOSTILE), { name: HOSTILE }),
  Symbol(HOSTILE),
  10n ** 5_000n,
  -(10n ** 50n),
  Number.NaN,
  -0,
  new Date(Number.NaN),
  new Map([[HOSTILE, HOSTILE]]),
  Array.from({ length: 1_000_000 }, () => HOSTILE),
  new Array(4_294_967_295),
  new Uint8Array(1_000_000),
  class Named {},
]
type Make = () => unknown
const { value } = fc.letrec<{ value: Make }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.nat(hostile.length - 1).map((place) => () => hostile[place]),
    text.map((given) => () => given),
    fc.anything().map((given) => () => given),
    fc.array(tie('value'), { maxLength: 3 }).map((list) => () => list.map((make) => make())),
    fc
      .dictionary(text, tie('value'), { maxKeys: 3 })
      .map((entries) => () => Object.fromEntries(Object.entries(entries).map(([name, make]) => [name, make()]))),
  ),
}))

function safe(shown: string, longest: number): void {
  expect(shown).not.toMatch(UNSAFE)
  expect(shown.length).toBeLessThanOrEqual(longest)
}

describe('whatever a value is', () => {
  test('it is shown on one short line that is safe to print, and nothing is thrown', () => {
    fc.assert(
      fc.property(value, (make) => {
        const given = make()
        safe(show(given), 80)
        safe(reasonOf(given), 200)
        safe(stackOf(given), 1_000)
      }),
      { numRuns: 500 },
    )
  })

  test('an error that holds it is safe to print', () => {
    fc.assert(
      fc.property(value, text, (make, name) => {
        const given = make()
        safe(invalidOption(name, given, name).message, 2_100)
        safe(new WeirError('WEIR_CLOSED', name, { cause: given }).message, 2_100)
      }),
      { numRuns: 200 },
    )
  })

  test('no more of it is looked at than is shown', () => {
    let looked = 0
    const wide = new Proxy(new Array(1_000_000).fill(1), {
      get: (target, name, self) => {
        looked++
        return Reflect.get(target, name, self)
      },
    })
    show(wide)
    expect(looked).toBeLessThan(200)
    const deep = Array.from({ length: 100_000 }).reduce<unknown>((inner) => [inner], 1)
    expect(show(deep)).toBe('[[[[...]]]]')
  })
})

test('a text stays readable', () => {
  expect(printable('ordinary – text, ünïcode 日本語 😀')).toBe('ordinary – text, ünïcode 日本語 😀')
  expect(printable('two\nlines\ttab')).toBe('two lines tab')
  expect(printable('\u001b[31mred\u0000\u202e\u{e0041}')).toBe('\\x1b[31mred\\x00\\u202e\\u{e0041}')
  expect(printable('x'.repeat(300))).toBe(`${'x'.repeat(197)}...`)
})

test('what listeners and functions throw reaches the process on one line', async () => {
  const warned: string[] = []
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation((message) => void warned.push(String(message)))
  try {
    const throttler = createThrottler({ clock: new ManualTime(0), policies: [{ limit: 1, interval: '1m' }] })
    throttler.on('blocked', throwing)
    throttler.on('blocked', async () => throwing())
    for (let i = 0; i < 5; i++) throttler.block(HOSTILE, '1m')
    await new Promise((resolve) => setImmediate(resolve))
    warnProcess('WEIR_WARN_LISTENER_FAILED', HOSTILE.repeat(1_000))
    adapterOf(throttler).warn(new WeirError('WEIR_WARN_OPTION_FUNCTION_FAILED', HOSTILE))
    // There are warnings for the event, for the test's own error, and for a throttler without a store.
    expect(warned.filter((message) => message.includes('"blocked"'))).toHaveLength(1)
    for (const message of warned) safe(message, 2_100)
    await throttler.close()
  } finally {
    emit.mockRestore()
  }
})

test('a list of causes does not grow without end', () => {
  const once = new Once()
  let said = 0
  for (let i = 0; i < 20_000; i++) if (once.first(`${i}${'x'.repeat(i % 300)}`)) said++
  expect(said).toBe(1_000)
  expect(once.first('0')).toBe(false)
})
