import fc from 'fast-check'
import { decodeList } from 'structured-field-values'
import { describe, expect, test } from 'vitest'
import { concurrency } from '../../../src/algorithms/concurrency/index.ts'
import { HeaderWriter, isListField, retryAfterSeconds } from '../../../src/http/answer/headers.ts'
import { adapterOf } from '../../../src/throttler/adapter-side.ts'
import { createThrottler } from '../../../src/throttler/throttler.ts'
import { ManualTime } from '../manual-time.ts'

/** Reads a value with an independent parser of structured fields, not the library that Weir uses to write them. */
function parse(field: string | undefined): { name: unknown; params: Record<string, unknown> }[] {
  return decodeList(field ?? '').map((item: { value: unknown; params: Record<string, unknown> | null }) => ({
    name: item.value,
    params: item.params ?? {},
  }))
}

function throttlerOf(...policies: { name?: string; limit: number; interval: number | `${number}${'s' | 'm' | 'h'}` }[]) {
  return createThrottler({ policies, clock: new ManualTime(60_000_000) })
}

function fieldsOf(writer: HeaderWriter, throttler: ReturnType<typeof throttlerOf>, keys: string[]) {
  const fields: Record<string, string> = {}
  const decision = adapterOf(throttler).decide(
    keys,
    keys.map(() => 1),
  )
  writer.write(decision, fields, (target, name, value) => {
    target[name] = value
  })
  return { fields, decision }
}

describe('draft-11', () => {
  test('one policy', () => {
    const throttler = throttlerOf({ name: 'user', limit: 100, interval: '1m' })
    const { fields } = fieldsOf(new HeaderWriter(throttler.policies), throttler, ['k'])
    expect(Object.keys(fields)).toEqual(['RateLimit-Policy', 'RateLimit'])
    expect(parse(fields['RateLimit-Policy'])).toEqual([{ name: 'user', params: { q: 100, w: 60 } }])
    expect(parse(fields['RateLimit'])).toEqual([{ name: 'user', params: { r: 99, t: 60 } }])
  })

  test('several policies are a list', () => {
    const throttler = throttlerOf({ name: 'a', limit: 5, interval: '1s' }, { name: 'b', limit: 7, interval: '1h' })
    const { fields } = fieldsOf(new HeaderWriter(throttler.policies), throttler, ['k', 'k'])
    expect(parse(fields['RateLimit-Policy'])).toEqual([
      { name: 'a', params: { q: 5, w: 1 } },
      { name: 'b', params: { q: 7, w: 3600 } },
    ])
    expect(parse(fields['RateLimit'])?.map(({ name, params }) => [name, params['r']])).toEqual([
      ['a', 4],
      ['b', 6],
    ])
  })

  test('a window that is no whole number of seconds is left out', () => {
    const throttler = throttlerOf({ limit: 5, interval: 1500 })
    const { fields } = fieldsOf(new HeaderWriter(throttler.policies), throttler, ['k'])
    expect(parse(fields['RateLimit-Policy'])).toEqual([{ name: 'default', params: { q: 5 } }])
  })

  test('any name, limit and cost gives fields that parse', () => {
    const name = fc.string({
      unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
      minLength: 1,
      maxLength: 64,
    })
    fc.assert(
      fc.property(
        name,
        fc.double({ min: 1, max: Number.MAX_SAFE_INTEGER, noNaN: true }),
        fc.double({ min: 0.001, max: 1e6, noNaN: true }),
        (policy, limit, cost) => {
          const throttler = throttlerOf({ name: policy, limit, interval: '1m' })
          const fields: Record<string, string> = {}
          new HeaderWriter(throttler.policies, ['draft-11', 'legacy']).write(
            adapterOf(throttler).decide(['k'], [cost]),
            fields,
            (target, key, value) => {
              target[key] = value
            },
          )
          const [policyItem] = parse(fields['RateLimit-Policy'])
          const [limitItem] = parse(fields['RateLimit'])
          expect(policyItem?.name).toBe(policy)
          expect(limitItem?.name).toBe(policy)
          for (const value of [policyItem?.params['q'], limitItem?.params['r'], limitItem?.params['t']]) {
            expect(Number.isInteger(value)).toBe(true)
            expect(value).toBeGreaterThanOrEqual(0)
          }
        },
      ),
    )
  })

  test('a rejected request has nothing left, and is not told to come back before the reset', () => {
    const throttler = throttlerOf({ limit: 1, interval: '1m' })
    const writer = new HeaderWriter(throttler.policies)
    fieldsOf(writer, throttler, ['k'])
    const { fields, decision } = fieldsOf(writer, throttler, ['k'])
    const [item] = parse(fields['RateLimit'])
    expect(item?.params['r']).toBe(0)
    expect(item?.params['t']).toBeLessThanOrEqual(retryAfterSeconds(decision) as number)
  })
})

test('legacy fields count in seconds from now', () => {
  const throttler = throttlerOf({ limit: 10, interval: '1m' })
  const { fields } = fieldsOf(new HeaderWriter(throttler.policies, 'legacy'), throttler, ['k'])
  expect(fields).toEqual({ 'X-RateLimit-Limit': '10', 'X-RateLimit-Remaining': '9', 'X-RateLimit-Reset': '60' })
})

test('or in Unix time', () => {
  const throttler = throttlerOf({ limit: 10, interval: '1m' })
  const writer = new HeaderWriter(throttler.policies, 'legacy-unix', adapterOf(throttler).clock)
  const { fields } = fieldsOf(writer, throttler, ['k'])
  expect(fields).toEqual({ 'X-RateLimit-Limit': '10', 'X-RateLimit-Remaining': '9', 'X-RateLimit-Reset': String(60_000 + 60) })
  expect(writer.timeless).toBe(false)
})

describe('older drafts', () => {
  test('draft-7', () => {
    const throttler = throttlerOf({ name: 'user', limit: 100, interval: '1m' })
    const { fields } = fieldsOf(new HeaderWriter(throttler.policies, 'draft-7'), throttler, ['k'])
    expect(fields).toEqual({ 'RateLimit-Policy': '100;w=60', RateLimit: 'limit=100, remaining=99, reset=60' })
  })

  test('draft-6, of the policy that decides among several', () => {
    const throttler = throttlerOf({ name: 'a', limit: 5, interval: '1s' }, { name: 'b', limit: 7, interval: '1h' })
    const { fields } = fieldsOf(new HeaderWriter(throttler.policies, 'draft-6'), throttler, ['k', 'k'])
    expect(fields).toEqual({
      'RateLimit-Policy': '5;w=1, 7;w=3600',
      'RateLimit-Limit': '5',
      'RateLimit-Remaining': '4',
      'RateLimit-Reset': '1',
    })
  })

  test('requests in flight come back at no known time', () => {
    const throttler = createThrottler({ policies: [{ limit: 2, algorithm: concurrency() }], clock: new ManualTime(60_000_000) })
    expect(fieldsOf(new HeaderWriter(throttler.policies, 'draft-7'), throttler, ['k']).fields).toEqual({
      'RateLimit-Policy': '2',
      RateLimit: 'limit=2, remaining=1',
    })
    expect(fieldsOf(new HeaderWriter(throttler.policies, 'draft-6'), throttler, ['k']).fields).not.toHaveProperty('RateLimit-Reset')
  })
})

test('several styles, or none', () => {
  const throttler = throttlerOf({ limit: 10, interval: '1m' })
  const writer = (style: unknown) => new HeaderWriter(throttler.policies, style as 'legacy')
  expect(Object.keys(fieldsOf(writer(['draft-11', 'legacy']), throttler, ['k']).fields)).toHaveLength(5)
  expect(Object.keys(fieldsOf(writer(['legacy-unix', 'draft-6']), throttler, ['k']).fields)).toHaveLength(7)
  for (const none of [false, []]) expect(fieldsOf(writer(none), throttler, ['k']).fields).toEqual({})
  const wrong = ['draft-10', 'both', 'draft-5', true, null, 6, ['draft-6', 'draft-7'], ['legacy', 'legacy-unix'], ['legacy', 'legacy'], [7]]
  for (const style of wrong) expect(() => writer(style)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
})

test('a field of several items takes those of other throttlers, the others hold one', () => {
  expect(isListField('RateLimit', '"user";r=1;t=2')).toBe(true)
  expect(isListField('RateLimit', 'limit=1, remaining=0, reset=2')).toBe(false)
  expect(isListField('RateLimit-Policy', '100;w=60')).toBe(true)
  for (const name of ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'X-RateLimit-Limit'])
    expect(isListField(name, '1')).toBe(false)
})

test('the longest wait of the policies that rejected is the wait', () => {
  const throttler = throttlerOf({ name: 'short', limit: 1, interval: '1s' }, { name: 'long', limit: 1, interval: '1h' })
  adapterOf(throttler).decide(['k', 'k'], [1, 1])
  const decision = adapterOf(throttler).decide(['k', 'k'], [1, 1])
  expect(retryAfterSeconds(decision)).toBeGreaterThan(1)
})
