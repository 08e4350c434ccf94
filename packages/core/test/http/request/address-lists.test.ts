import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { expect, test } from 'vitest'
import { addresses } from '../../../src/http/request/address-list.ts'

const stands = (list: readonly string[]) => addresses(...list).includes

test.each([
  ['10.0.0.0/8', '10.255.0.1', true],
  ['10.0.0.0/8', '11.0.0.1', false],
  ['10.9.9.9/8', '10.1.1.1', true],
  ['10.0.0.0/8', '::ffff:10.1.1.1', true],
  ['::ffff:10.0.0.0/104', '10.1.1.1', true],
  ['192.0.2.7', '192.0.2.7:1234', true],
  ['192.0.2.7', '0300.0.2.7', true],
  ['2001:db8::/32', '[2001:DB8:1::7]:443', true],
  ['2001:db8::/33', '2001:db8:8000::', false],
  ['fe80::1', 'fe80::1%eth0', true],
  ['0.0.0.0/0', '203.0.113.9', true],
  ['0.0.0.0/0', '2001:db8::1', false],
  ['::/0', '203.0.113.9', false],
  ['::/0', 'no address', false],
])('with %s on the list, %s stands on it: %s', (entry, address, expected) => {
  const test = stands([entry])
  expect(test(address)).toBe(expected)
  expect(test(address)).toBe(expected)
})

test('an address that is not known stands on no list', () => {
  expect(stands(['0.0.0.0/0', '::/0'])(undefined)).toBe(false)
})

test.each(['', '/8', '10.0.0.0/', '10.0.0.0/33', '::/129', '10.0.0.0/-1', '10.0.0.0/8/8', '::ffff:10.0.0.0/95', 'example.org', 7])(
  '%s is no entry of a list',
  (entry) => {
    expect(() => stands([entry as string])).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  },
)

test('a network holds what it holds by ipaddr.js', () => {
  const network = fc.oneof(fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })), fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })))
  fc.assert(
    fc.property(network, fc.ipV4(), fc.ipV6(), fc.nat(), ([base, bits], v4, v6, flip) => {
      // The test of addresses explains this exception.
      fc.pre(![base, v6].some((address) => /^::\d+\./.test(address)))
      const [parsed] = ipaddr.parseCIDR(`${base}/${bits}`)
      if (parsed instanceof ipaddr.IPv6 && parsed.isIPv4MappedAddress()) return
      const bytes = parsed.toByteArray()
      bytes[flip % bytes.length] = (bytes[flip % bytes.length] as number) ^ (1 << (flip % 8))
      const near = ipaddr.fromByteArray(bytes).toString()
      const test = stands([`${base}/${bits}`])
      for (const address of [base, near, v4, v6]) {
        const other = ipaddr.process(address)
        expect(test(address)).toBe(other.kind() === parsed.kind() && other.match(parsed, bits))
      }
    }),
    { numRuns: 1_000 },
  )
})
