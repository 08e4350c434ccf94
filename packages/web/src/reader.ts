import { anyReadings, pathOf, type RequestReader } from '@weir/core/adapter'
import { type Platform, socketOf } from './platform.ts'

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
  return Object.freeze({
    options: ['address'],
    bundled: true,
    afterFreeze: 'sync',
    method: (request: Request) => request.method,
    // Your code reads the URL that the platform has made from the target.
    path: (request: Request) => pathOf(request.url),
    // A URL never starts with a second host.
    readings: (path: string) => anyReadings(path.replace(/^\/+/, '/')),
    route: () => undefined,
    ip: address,
    socket: (request: Request) => socketOf(platformOf(request), request),
    howToTrust: (request: Request) =>
      socketOf(platformOf(request), request) === undefined
        ? 'Pass all arguments of your handler, as in limit.rejection(request, server), or set the option "address", e.g. to forwardedAddress(1) for one proxy.'
        : 'Set the option address: forwardedAddress(1) for one proxy.',
    header: (request: Request, name: string) => request.headers.get(name) ?? undefined,
  })
}
