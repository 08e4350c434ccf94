import { expect, test } from 'vitest'
import { trustsAnyone } from '../../../src/http/request/trusts-anyone.ts'

/** Finds an address as Express and Fastify do: from the connection on through the list, as long as the addresses reached are trusted. */
function requestThat(trusts: (address: string, hop: number) => boolean, raw: boolean): object {
  return {
    get ip(): string {
      const { headers, socket } = (raw ? (this as { raw?: object }).raw : this) as {
        headers: Record<string, string>
        socket: { remoteAddress: string }
      }
      const path = [socket.remoteAddress, ...(headers['x-forwarded-for']?.split(', ').reverse() ?? [])]
      return path.find((address, hop) => hop === path.length - 1 || !trusts(address, hop)) as string
    },
  }
}

test.each([
  ['everyone', () => true, true],
  ['nobody', () => false, false],
  ['a network', (address: string) => address.startsWith('10.'), false],
  ['one hop', (_: string, hop: number) => hop < 1, false],
  ['a hundred hops', (_: string, hop: number) => hop < 100, false],
  [
    'what it can not read',
    () => {
      throw new Error('broken')
    },
    false,
  ],
])('a framework that trusts %s is found out', (_, trusts, anyone) => {
  for (const raw of [false, true]) expect(trustsAnyone(requestThat(trusts, raw))).toBe(anyone)
})
