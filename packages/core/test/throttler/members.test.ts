import { expect, expectTypeOf, test } from 'vitest'
import { createThrottler, Throttler } from '../../src/index.ts'
import { cluster, snapshot } from '../../src/inspect/index.ts'
import { ADAPTER, adapterOf } from '../../src/throttler/adapter-side.ts'
import { thrownBy } from '../support/nodes.ts'

/** The completion list of an editor. */
const FOR_USERS = [
  'acquire',
  'block',
  'charge',
  'check',
  'checkAsync',
  'close',
  'explain',
  'flush',
  'nodeId',
  'on',
  'peek',
  'policies',
  'refund',
  'release',
  'reserve',
  'reserveAsync',
  'reset',
  'resetAll',
  'schedule',
  'start',
  'state',
  'tryAcquire',
  'unblock',
  'update',
  'usage',
  'waitFor',
  'waiting',
  'wrap',
] as const

test('a throttler shows its users only members for users', () => {
  expectTypeOf<keyof Throttler & string>().toEqualTypeOf<(typeof FOR_USERS)[number]>()
  const members = Object.getOwnPropertyNames(Throttler.prototype).filter((name) => name !== 'constructor')
  expect(members.sort()).toEqual([...FOR_USERS].sort())
  const throttler = createThrottler({ policies: [{ limit: 1, interval: '1m' }] })
  expect(Object.keys(throttler)).toEqual([])
  expect(Object.getOwnPropertyDescriptor(throttler, ADAPTER)).toMatchObject({ enumerable: false, writable: false, configurable: false })
})

test('adapters find theirs by a symbol that all copies of the package share', () => {
  const throttler = createThrottler({ policies: [{ limit: 1, interval: '1m' }] })
  const side = adapterOf(throttler)
  expect((throttler as unknown as Record<symbol, unknown>)[Symbol.for('weir.adapter')]).toBe(side)
  expect(side.decide(['a'], [1]).allowed).toBe(true)
  expect(throttler.check('a').allowed).toBe(false)
})

test.each([undefined, null, 'throttler', () => {}, {}])('%o is no throttler', (given) => {
  for (const use of [adapterOf, snapshot, cluster])
    expect(thrownBy(() => use(given as never))).toMatchObject({
      code: 'WEIR_INVALID_OPTION',
      message: expect.stringContaining('createThrottler'),
    })
})
