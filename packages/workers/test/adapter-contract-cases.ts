import type { AdapterUnderTest } from '@weir/testing'

/** Each keeps the whole contract. */
export const VARIANTS = ['without a store', 'with a Durable Object'] as const

/** The abilities of `@weir/web` in workerd, as its applications in the tests use it. workerd listens on no Unix socket. */
export const ABILITIES: Pick<AdapterUnderTest<Request>, 'routes' | 'handlerEnd' | 'http2' | 'proxies'> = {
  routes: 'path',
  handlerEnd: true,
  http2: false,
  proxies: false,
}

/** The parts of the contract that can't be tried in workerd, and the reasons. */
export const WITHOUT: Readonly<Record<string, string>> = {
  'keeps the fields on an answer to an error': 'an error passes to the platform, which makes the response',
  'believes no forwarded address by itself': 'Cloudflare sets the address itself, so no proxy must be trusted',
  'says how to trust a proxy on a Unix socket, whose clients share a key until then': 'workerd listens on no Unix socket',
  'holds none of the requests that a client has sent at once, behind one that is not answered yet, when it goes away':
    'workerd reads a request only after the one before it on the connection has its response',
  'leaves an answer alone that a handler has begun, and breaks it off when the handler fails':
    'the platform has no response of Node.js to write to',
}

/** A case, and the ports that it needs: of the relay, and of each entrance. */
export interface CaseToRun {
  readonly title: string
  readonly relay: number
  readonly entrances: readonly (readonly [entrance: string, port: number])[]
}

/** The title of a case among those of all variants. */
export function titleOf(variant: string, title: string): string {
  return `${variant}: ${title}`
}
