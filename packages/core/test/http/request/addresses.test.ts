import fc from 'fast-check'
import ipaddr from 'ipaddr.js'
import { describe, expect, test } from 'vitest'
import { addressKeys, parseAddress } from '../../../src/http/request/address.ts'

const key = addressKeys()

describe('the key of an address', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['192.0.2.7:51234', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::FFFF:192.0.2.7', '192.0.2.7'],
    ['::ffff:c000:207', '192.0.2.7'],
    ['0:0:0:0:0:ffff:c000:0207', '192.0.2.7'],
    ['[::ffff:192.0.2.7]:443', '192.0.2.7'],
    ['0300.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]:8080', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80::1/128'],
    ['fe80::2%eth0', 'fe80::2/128'],
    ['febf:ffff::1', 'febf:ffff::1/128'],
    ['fec0::1', 'fec0::/64'],
    ['64:ff9b::192.0.2.7', '192.0.2.7'],
    ['64:FF9B:0::c000:0207', '192.0.2.7'],
    ['64:ff9b:1::c000:207', '64:ff9b:1::c000:207/128'],
    ['64:ff9b:1:c000:2:700::', '64:ff9b:1:c000:2:700::/128'],
    ['64:ff9b:2::c000:207', '64:ff9b:2::/64'],
    ['::ffff:0:192.0.2.7', '192.0.2.7'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdf8', '192.0.2.7'],
    ['2001:1::1', '2001:1::/64'],
    ['2002:c000:207:1::1', '2002:c000:207::/48'],
    ['2002:c000:207:2::1', '2002:c000:207::/48'],
    ['::1', '::/64'],
    // A port without brackets, as CloudFront writes it.
    ['2001:db8:1:2::9:46532', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6:443', '2001:db8:1:2::/64'],
    ['::ffff:192.0.2.7:46532', '192.0.2.7'],
    // These texts are addresses as a whole, although their last group could be a port.
    ['2001:db8:1:2::9:443', '2001:db8:1:2::/64'],
    ['2001:db8::3:4:5:6:443', '2001:db8:0:3::/64'],
  ])('%s is %s', (address, expected) => {
    expect(key(address)).toBe(expected)
  })

  test.each(['2001:db8::1:65536', '2001:db8::1:00000', '2001:db8:1:2:3:4:5:6:0', '2001:db8::1::46532', '2001:db8::x:46532'])(
    'an IPv6 address with something else behind it than a port is none: %s',
    (address) => {
      expect(key(address)).toBe('unknown')
    },
  )

  test.each([undefined, '', 'unknown', '_hidden', 'example.org', '192.0.2', '1.2.3.4.5', '::1::', '%', 'x'.repeat(10_000)])(
    'what is no address shares one key: %s',
    (address) => {
      // "192.0.2" is an address by an old rule. However it is read, it must not become a key of the sender's choice.
      expect(['unknown', '192.0.0.2']).toContain(key(address))
    },
  )

  test('every spelling of an IPv6 address within a network has one key', () => {
    fc.assert(
      fc.property(
        // Networks whose addresses carry IPv4 clients, or belong to one client or one link, have rows of their own above.
        fc.tuple(fc.integer({ min: 0x2003, max: 0xfdff }), fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 7, maxLength: 7 })),
        fc.integer({ min: 1, max: 128 }),
        ([first, others], subnet) => {
          const parts = [first, ...others]
          const keys = addressKeys(subnet)
          const address = new ipaddr.IPv6(parts)
          const expected = keys(address.toNormalizedString())
          expect(keys(address.toRFC5952String())).toBe(expected)
          expect(keys(address.toNormalizedString().toUpperCase())).toBe(expected)
          const [network, bits] = ipaddr.parseCIDR(expected)
          expect(bits).toBe(subnet)
          expect(address.match(network, bits)).toBe(true)
        },
      ),
    )
  })

  test('an IPv4-mapped address is the IPv4 address in any spelling', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const mapped = ipaddr.IPv4.parse(address).toIPv4MappedAddress()
        expect(key(mapped.toNormalizedString())).toBe(key(address))
        expect(key(`::ffff:${address}`)).toBe(key(address))
      }),
    )
  })

  test.each([0, 129, 64.5, Number.NaN, '64'])('a subnet of %s bits is rejected', (subnet) => {
    expect(() => addressKeys(subnet as number)).toThrow(expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }))
  })

  test('a single address is kept with 128 bits', () => {
    expect(addressKeys(128)('2001:db8::1')).toBe('2001:db8::1/128')
  })
})

/** Addresses as clients, gateways and people write them, nonsense near them included. */
const spelling = fc.oneof(
  fc.ipV6(),
  fc.ipV4(),
  fc.ipV4Extended(),
  fc.ipV4().map((address) => `::ffff:${address}`),
  fc.string({ unit: fc.constantFrom(...'0123456789abcdefx:.'), maxLength: 20 }),
)

test('an address is what ipaddr.js makes of it, whatever its spelling', () => {
  fc.assert(
    fc.property(spelling, (text) => {
      const found = parseAddress(text)
      if (!ipaddr.isValid(text)) {
        // The URL parser accepts a few more forms. It turns them into addresses, so the sender can't choose a key.
        expect(found === undefined || ipaddr.isValid(found.text)).toBe(true)
        return
      }
      // ipaddr.js reads old IPv4-compatible addresses (RFC 4291, section 2.5.5.1) as IPv4-mapped ones.
      fc.pre(!/^::\d+\./.test(text))
      const expected = ipaddr.process(text)
      expect(found).toEqual({
        family: expected.kind(),
        text: expected instanceof ipaddr.IPv6 ? expected.toRFC5952String() : String(expected),
      })
    }),
    { numRuns: 2_000 },
  )
})
