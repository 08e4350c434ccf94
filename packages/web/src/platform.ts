import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Connection, inWorkers } from '@weir/core/adapter'

/** The parts of a platform that Weir finds in the arguments of a handler. */
export interface Platform {
  /** Set by `@hono/node-server`. */
  readonly incoming?: IncomingMessage
  /** Set by `@hono/node-server`. */
  readonly outgoing?: ServerResponse
  /** Returns the connection of a request, if it isn't that of `incoming`. */
  readonly socket?: (request: Request) => Connection | undefined
  /** Returns the address of a request's client, if it isn't the other end of the connection. */
  readonly address?: (request: Request) => string | undefined
}

const NONE: Platform = Object.freeze({})

// These set a header themselves, so that clients can't choose it.
const CLOUDFLARE: Platform | undefined = inWorkers() ? { address: (request) => field(request, 'cf-connecting-ip') } : undefined
// Reading a variable needs a permission in Deno, where this platform does not exist.
const onVercel = !('Deno' in globalThis) && globalThis.process?.env['VERCEL'] === '1'
const VERCEL: Platform | undefined = onVercel ? { address: (request) => field(request, 'x-real-ip') } : undefined

/** Members that platforms pass to a handler beside the request. */
interface Given extends Platform {
  readonly server?: unknown
  readonly remoteAddr?: { readonly hostname?: string }
  readonly requestIP?: (request: Request) => { readonly address: string } | null
  readonly getClientAddress?: () => string
}

/** The platform that passed this argument to a handler. */
export function platformOf(argument: unknown): Platform {
  // First, because any member of a binding may look like a function.
  if (CLOUDFLARE !== undefined) return CLOUDFLARE
  if (typeof argument !== 'object' || argument === null) return VERCEL ?? NONE
  const { server } = argument as Given
  // Applications may pass `{ server: env }`.
  const given = typeof server === 'object' && server !== null ? (server as Given) : (argument as Given)
  // Returned as it is, because a copy would cost time for each request.
  if (given.incoming !== undefined) return VERCEL === undefined ? given : { ...given, ...VERCEL }
  // Bun.
  if (typeof given.requestIP === 'function') return { socket: (request) => from(given.requestIP?.(request)?.address) }
  // Deno.
  if (typeof given.remoteAddr?.hostname === 'string') return { socket: () => from(given.remoteAddr?.hostname) }
  // SvelteKit.
  if (typeof given.getClientAddress === 'function') return { address: () => given.getClientAddress?.() }
  return VERCEL ?? NONE
}

/** The connection of a request. */
export function socketOf({ incoming, socket }: Platform, request: Request): Connection | undefined {
  return incoming === undefined ? socket?.(request) : incoming.socket
}

/** The address of a request's client as the platform reports it. */
export function addressBy(platform: Platform, request: Request): string | undefined {
  return typeof platform.address === 'function' ? platform.address(request) : socketOf(platform, request)?.remoteAddress
}

function from(remoteAddress: string | undefined): Connection | undefined {
  return remoteAddress === undefined ? undefined : { remoteAddress }
}

function field(request: Request, name: string): string | undefined {
  return request.headers.get(name) ?? undefined
}
