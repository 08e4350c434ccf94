import { describe, expect, test } from 'vitest'
import { createThrottler, type Throttler } from '../../src/index.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'

function made(): Throttler {
  const policies = ['login', 'api'].map((name) => ({ name, limit: 2, interval: '1h', coordination: 'local' }) as const)
  return createThrottler({ policies })
}

/** The remaining units of a key that has used one of two. */
const left = (throttler: Throttler): readonly number[] => throttler.peek('ann').parts.map(({ remaining }) => remaining)

const CALLS = {
  reset: (throttler: Throttler, options: never) => throttler.reset('ann', options),
  block: (throttler: Throttler, options: never) => throttler.block('ann', '1m', options),
  unblock: (throttler: Throttler, options: never) => throttler.unblock('ann', options),
  usage: (throttler: Throttler, options: never) => throttler.usage('ann', options),
}
const WRONG: readonly (readonly [options: unknown, code: string, message: RegExp])[] = [
  ['login', 'WEIR_INVALID_OPTION', /^Option "options" is "login". Use an object, such as \{ policy: "login" \}/],
  [5, 'WEIR_INVALID_OPTION', /^Option "options" is 5/],
  [null, 'WEIR_INVALID_OPTION', /^Option "options" is null/],
  [['login'], 'WEIR_UNKNOWN_OPTION', /^Unknown option "0"/],
  [{ policies: ['login'] }, 'WEIR_UNKNOWN_OPTION', /^Unknown option "policies"\. \w+ has: policy/],
  [{ policy: 'logon' }, 'WEIR_UNKNOWN_POLICY', /^Unknown policy "logon"\. This throttler has "login" and "api"\./],
]

for (const [name, call] of Object.entries(CALLS)) {
  test.each(WRONG)(`${name} with wrong options throws and changes nothing: %j`, async (options, code, message) => {
    const throttler = made()
    throttler.check('ann')
    await expect((async () => call(throttler, options as never))()).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
    expect(left(throttler)).toEqual([1, 1])
    await throttler.close()
  })
}

test('reset of one policy, of all, and with options that are undefined', async () => {
  const throttler = made()
  throttler.check('ann')
  throttler.reset('ann', { policy: 'login' })
  expect(left(throttler)).toEqual([2, 1])
  throttler.reset('ann', undefined)
  expect(left(throttler)).toEqual([2, 2])
  await throttler.close()
})

test.each(['throtled', 'toString', '__proto__', '', undefined, 5])('an event that does not exist has no listeners: %s', (name) => {
  const throttler = made()
  expect(() => throttler.on(name as never, () => {})).toThrow(
    expect.objectContaining({
      code: 'WEIR_INVALID_OPTION',
      message: expect.stringMatching(/Use one of blocked, unblocked, rejections, .*, warning/),
    }),
  )
})

test.each([undefined, null, {}, 'log'])('what listens is a function: %j', (listener) => {
  expect(() => made().on('rejections', listener as never)).toThrow(
    expect.objectContaining({ code: 'WEIR_INVALID_OPTION', message: expect.stringMatching(/^Option "listener"/) }),
  )
})

describe('options of one request', () => {
  const ASKS = {
    check: (throttler: Throttler, options: never) => throttler.check('ann', options),
    checkAsync: (throttler: Throttler, options: never) => throttler.checkAsync('ann', options),
    peek: (throttler: Throttler, options: never) => throttler.peek('ann', options),
    'checkAsync where requests are held': async (throttler: Throttler, options: never) => {
      throttler.update(adapterOf(throttler).rules.map((rule) => ({ ...rule, delay: '1s' })))
      return await throttler.checkAsync('ann', options)
    },
  }

  test.each(Object.entries(ASKS))('%s rejects options that it does not have, and counts nothing', async (_, ask) => {
    const throttler = made()
    for (const [options, hint] of [
      [{ costs: 2 }, 'Unknown option "costs". Did you mean "cost"? check() has: cost, limit.'],
      [{ cost: 1, timeout: '5s' }, 'Unknown option "timeout". It is an option of acquire(). check() has: cost, limit.'],
    ] as const) {
      const error = await (async () => ask(throttler, options as never))().catch((error) => error)
      expect(error).toMatchObject({ code: 'WEIR_UNKNOWN_OPTION', message: `${hint} See @weir/core/docs/errors/weir_unknown_option.md` })
    }
    expect(left(throttler)).toEqual([2, 2])
    // Inherited properties of an object are not its options.
    await ask(throttler, Object.assign(Object.create({ other: 1 }), { cost: 1, limit: undefined }) as never)
    await throttler.close()
  })
})

describe('what is to be done about a decision needs a decision', () => {
  const CALLS = {
    refund: (throttler: Throttler, decision: never) => throttler.refund(decision),
    charge: (throttler: Throttler, decision: never) => throttler.charge(decision, 1),
    release: (throttler: Throttler, decision: never) => throttler.release(decision),
    hold: (throttler: Throttler, decision: never) => throttler.waitFor(decision),
  }

  test.each(Object.entries(CALLS))('%s', async (_, call) => {
    const throttler = made()
    const promise = throttler.checkAsync('ann')
    for (const [given, text] of [
      [promise, /^Option "decision" is \[object Promise\]. Use the decision that .* returned\. It is a promise: await it\./],
      [5, /^Option "decision" is 5. Use the decision that check\(\),.* returned/],
      [undefined, /^Option "decision" is undefined/],
      [null, /^Option "decision" is null/],
    ] as const) {
      const error = await (async () => call(throttler, given as never))().catch((error) => error)
      expect(error).toMatchObject({ code: 'WEIR_INVALID_OPTION', message: expect.stringMatching(text) })
    }
    expect(left(throttler)).toEqual([1, 1])
    await call(throttler, (await promise) as never)
    await throttler.close()
  })
})
