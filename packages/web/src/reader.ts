import type { IncomingMessage } from 'node:http'
import { anyReadings, pathOf, type RequestReader } from '@weir/core/adapter'
import type { Platform } from './platform.ts'

/**
 * Reads a `Request`.
 *
 * @param address finds the address of a request's client
 * @param platformOf returns the platform that passed the request
 */
export function webReader(
  address: (request: Request) => string | undefined,
  platformOf: (request: Request) => Platform,
): RequestReader<Request> {
  const sent = (request: Request) => sentTarget(request.url, platformOf(request).incoming)
  return Object.freeze({
    options: ['address'],
    bundled: true,
    method: (request: Request) => request.method,
    path: sent,
    // A platform makes the URL from the target, and your code reads the URL.
    rewritten: (request: Request) => {
      const path = pathOf(targetOf(request.url))
      return pathOf(sent(request)) === path ? undefined : path
    },
    readings: anyReadings,
    route: () => undefined,
    ip: address,
    socket: (request: Request) => platformOf(request).incoming?.socket,
    howToTrust: (request: Request) =>
      platformOf(request).incoming === undefined
        ? 'Set the option "address": forwardedAddress(1) behind one proxy, or a function such as (request, context) => context.ip.'
        : 'Set the option address: forwardedAddress(1) for one proxy.',
    header: (request: Request, name: string) => request.headers.get(name) ?? undefined,
  })
}

/** The target as the client sent it, as far as the platform reports it. */
export function sentTarget(url: string, incoming: IncomingMessage | undefined): string {
  return incoming?.url ?? targetOf(url)
}

/** The target in an absolute URL. */
function targetOf(url: string): string {
  const path = url.indexOf('/', url.indexOf('://') + 3)
  return path === -1 ? '/' : url.slice(path)
}
