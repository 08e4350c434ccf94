import { expect, onTestFinished, test, vi } from 'vitest'
import { Attempts } from '../src/access/attempts.ts'

function make(): Attempts {
  const attempts = new Attempts()
  onTestFinished(() => attempts.close())
  return attempts
}

/** The number of allowed attempts among `count` in a row. */
function made(attempts: Attempts, count: number, address: (i: number) => string | undefined): number {
  return Array.from({ length: count }, (_, i) => attempts.wait(address(i))).filter((wait) => wait === 0).length
}

test('ten a minute from one address, while others still may', () => {
  const attempts = make()
  expect(made(attempts, 100, () => '203.0.113.7')).toBe(10)
  expect(attempts.wait('203.0.113.7')).toBeGreaterThan(0)
  expect(attempts.wait('203.0.113.8')).toBe(0)
})

test.each<[string, (i: number) => string | undefined]>([
  ['addresses of one IPv6 network', (i) => `2001:db8:1:2::${i.toString(16)}`],
  ['an IPv4 address in both spellings', (i) => (i % 2 === 0 ? '203.0.113.7' : '::ffff:203.0.113.7')],
  ['senders whose address is not known', () => undefined],
  ['what is no address', (i) => `forged ${i}`],
])('%s count as one', (_what, address) => {
  expect(made(make(), 100, address)).toBe(10)
})

test('a dashboard on a Unix socket is not told how services trust a proxy', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => warn.mockRestore())
  make().wait(undefined)
  expect(warn).not.toHaveBeenCalled()
})

test.each<[string, number, (i: number) => string, string]>([
  ['six addresses', 6, (i) => `198.51.100.${i}`, '203.0.113.7'],
  ['all networks of a /48', 65_536, (i) => `2001:db8:1:${i.toString(16)}::1`, '2001:db8:2::1'],
  ['more addresses than are remembered', 110_000, (i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, '203.0.113.7'],
])('%s that use up all their attempts lock nobody else out', (_what, count, address, user) => {
  const attempts = make()
  for (let i = 0; i < count; i++) for (let tried = 0; tried < (count > 100 ? 1 : 20); tried++) attempts.wait(address(i))
  expect(made(attempts, 10, () => user)).toBe(10)
})
