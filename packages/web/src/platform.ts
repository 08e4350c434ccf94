import type { IncomingMessage, ServerResponse } from 'node:http'

/** The parts of a platform that Weir finds in the arguments of a handler. */
export interface Platform {
  /** Set by `@hono/node-server`. */
  readonly incoming?: IncomingMessage
  /** Set by `@hono/node-server`. */
  readonly outgoing?: ServerResponse
  /** Returns the address of a request's client. Undefined if the platform reports none. */
  readonly address?: (request: Request) => string | undefined
}

const NONE: Platform = Object.freeze({})

/** Members that platforms pass to a handler beside the request. */
interface Given extends Platform {
  readonly server?: unknown
  readonly remoteAddr?: { readonly hostname?: string }
  readonly requestIP?: (request: Request) => { readonly address: string } | null
  readonly getClientAddress?: () => string
}

/** The platform that passed this argument to a handler. */
export function platformOf(argument: unknown): Platform {
  if (typeof argument !== 'object' || argument === null) return ofVariables()
  const given = argument as Given
  // Applications may pass `{ server: env }`.
  if (typeof given.server === 'object' && given.server !== null) return platformOf(given.server)
  if ('incoming' in given) return { ...given, ...ofVariables() }
  if (typeof given.requestIP === 'function') return { address: (request) => given.requestIP?.(request)?.address }
  // Deno.
  if (typeof given.remoteAddr?.hostname === 'string') return { address: () => given.remoteAddr?.hostname }
  // SvelteKit.
  if (typeof given.getClientAddress === 'function') return { address: () => given.getClientAddress?.() }
  return ofVariables()
}

/** Platforms that set a header with the address themselves, so that clients can't choose it. */
function ofVariables(): Platform {
  const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } }
  if (navigator?.userAgent === 'Cloudflare-Workers') return { address: (request) => field(request, 'cf-connecting-ip') }
  // Reading a variable needs a permission in Deno, where this platform does not exist.
  if (!('Deno' in globalThis) && process.env['VERCEL'] === '1') return { address: (request) => field(request, 'x-real-ip') }
  return NONE
}

function field(request: Request, name: string): string | undefined {
  return request.headers.get(name) ?? undefined
}
