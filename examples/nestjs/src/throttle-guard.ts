import { type CanActivate, type ExecutionContext, HttpException } from '@nestjs/common'
import type { Throttler } from '@weir/core'
import {
  createGuard,
  type Guard,
  headerValue,
  type RequestReader,
  type SetHeader,
  ThrottledError,
  type ThrottleInput,
} from '@weir/core/http'
import type { Request, Response } from 'express'

type Args = readonly [request: Request, response: Response]

const nestReader: RequestReader<Request> = {
  method: (request) => request.method,
  path: (request) => request.originalUrl,
  // Guards run when the route is known.
  route: (request) => request.route?.path,
  ip: (request) => request.ip,
  header: (request, name) => headerValue(request.headers[name]),
}

const setHeader: SetHeader<Response> = (response, name, value) => void response.setHeader(name, value)

/** Throttles the requests of a NestJS application: `app.useGlobalGuards(new ThrottleGuard({ ... }))`. */
export class ThrottleGuard implements CanActivate {
  readonly #guard: Guard<Request, Args>

  constructor(input: ThrottleInput<Request, Args>) {
    this.#guard = createGuard<Request, Args>(input, nestReader)
  }

  get throttler(): Throttler<string, Request> {
    return this.#guard.throttler
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    // Gateways of WebSockets and microservices have no response to write to.
    if (context.getType() !== 'http') return true
    const guard = this.#guard
    const request = context.switchToHttp().getRequest<Request>()
    const response = context.switchToHttp().getResponse<Response>()
    const decision = await guard.check(request)
    if (decision === undefined) return true
    if (decision.allowed) {
      guard.writeHeaders(decision, response, setHeader)
      guard.watch(decision, response, [request, response])
      return true
    }
    const refusal = await guard.refuse(request, decision)
    for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value)
    // The body belongs to the application's exception filters.
    const error = new ThrottledError(refusal)
    throw new HttpException({ statusCode: refusal.status, message: error.message }, refusal.status, { cause: error })
  }
}
