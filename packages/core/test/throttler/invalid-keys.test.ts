import { describe, expect, test } from 'vitest'
import { snapshot } from '../../src/inspect/index.ts'
import { scene, thrownBy } from '../support/nodes.ts'

const bad: readonly unknown[] = [undefined, null, 7, Number.NaN, true, 7n, Symbol('a'), () => 'a']

describe('a key that is no string', () => {
  test.each(bad.map((key) => [String(key), key]))('%s', (_, key) => {
    for (const names of [['p'], ['p', 'q']]) {
      const { node } = scene()
      const throttler = node(names.map((name) => ({ name, limit: 5, interval: '1m' })) as never)
      const calls = [
        () => throttler.check(key as string),
        () => throttler.peek(key as string),
        () => throttler.block(key as string, '1s'),
        () => throttler.unblock(key as string),
      ]
      for (const call of calls) {
        const error = thrownBy(call)
        expect(error.code).toBe('WEIR_INVALID_KEY')
        expect(error.message).toContain('must be a string')
      }
      expect(snapshot(throttler).policies[0]?.allowed).toBe(0)
    }
  })

  test('rejects where the answer is a promise', async () => {
    const { node } = scene()
    await expect(node({ limit: 5, interval: '1m' }).checkAsync(7 as never)).rejects.toMatchObject({ code: 'WEIR_INVALID_KEY' })
  })

  test('the message shows what was given, on one short line', () => {
    const { node } = scene()
    const throttler = node({ limit: 5, interval: '1m' })
    expect(thrownBy(() => throttler.block({ a: `\n\u001b[31m${'x'.repeat(500)}` } as never, '1s')).message).toMatch(/^[\x20-\x7e]{1,200}$/)
  })
})
