import fc from 'fast-check'
import { expect, test } from 'vitest'
import { escapeKey, escapePolicy, intervalKeys, Keys, nameOf, type ShardKeys, unescapeText } from '../src/keys/keys.ts'

function counterKey(bucket: ShardKeys, policy: string, name: string, ordinal: number): string {
  const { counterPrefix, suffix } = intervalKeys(bucket, policy, ordinal)
  return counterPrefix + name + suffix
}

import { evenTags, slotOf } from '../src/keys/slots.ts'

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 20 }).map((codes) => String.fromCharCode(...codes)),
  fc.string({ unit: fc.constantFrom('%', 'u', '2', '5', 'd', '8', '0', ':', '{', '}', '\n', '\ud800', '#') }),
)

test('every text survives escaping', () => {
  fc.assert(fc.property(anyText, (text) => unescapeText(escapeKey(text)) === text && unescapeText(escapePolicy(text)) === text))
})

test('what is escaped is one line that UTF-8 can carry', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const escaped = escapeKey(text)
      return !/[\p{Cc}\p{Z}]/u.test(escaped) && Buffer.from(escaped).toString() === escaped
    }),
  )
})

test('different keys have different names, also where one is the hash of the other', () => {
  const long = escapeKey('x'.repeat(201))
  expect(nameOf(long)).toHaveLength(45)
  expect(nameOf(escapeKey(nameOf(long)))).not.toBe(nameOf(long))
  fc.assert(fc.property(anyText, anyText, (a, b) => (a === b) === (nameOf(escapeKey(a)) === nameOf(escapeKey(b)))))
})

test('policy, key and ordinal can be told apart in a counter', () => {
  const [bucket] = new Keys('weir', 1).shards
  if (bucket === undefined) throw new Error('no bucket')
  const name = (policy: string, key: string): string => counterKey(bucket, escapePolicy(policy), nameOf(escapeKey(key)), 7)
  fc.assert(
    fc.property(anyText, anyText, anyText, anyText, (policy, key, otherPolicy, otherKey) => {
      const same = policy === otherPolicy && key === otherKey
      return (name(policy, key) === name(otherPolicy, otherKey)) === same
    }),
  )
  expect(name('a:b', 'c')).not.toBe(name('a', 'b:c'))
})

test('no key chooses its slot', () => {
  const keys = new Keys('weir', 16)
  fc.assert(
    fc.property(anyText, (text) => {
      const name = nameOf(escapeKey(`{${text}}`))
      const bucket = keys.shards[keys.shardOf(name)]
      return bucket !== undefined && /^weir:\{[\d.]+\}:c:/.test(counterKey(bucket, 'p', name, 1))
    }),
  )
})

test('buckets spread evenly over the slots', () => {
  // The check value of CRC16/XMODEM.
  expect(slotOf('123456789')).toBe(0x31c3)
  for (const count of [1, 3, 16, 100]) {
    const slots = evenTags(count).map(slotOf)
    slots.forEach((slot, i) => {
      expect(Math.floor((slot * count) / 16_384)).toBe(i)
    })
  }
})
