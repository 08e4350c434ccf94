import type { Costs, Decision } from '@weir/core'
import { peekThrice } from './peeking.ts'

/** The members of a limit of handlers that the routes use. */
export interface HandlerLimit {
  decision(request: Request): (Decision & { used?(costs: Costs): void }) | undefined
  peek(request: Request): Promise<Decision | undefined>
  readonly throttler: { charge(decision: Decision, units: number): void }
}

/** Functions of a runtime that the routes need. */
export interface HandlerSurroundings {
  /** Delays the answer of `GET /work` until its promise resolves. */
  work(): Promise<void>
  /** Calls a function after the response to a request. */
  atEnd(request: Request, run: () => void): void
}

/**
 * Makes the application of the adapter contract for adapters that wrap handlers of `Request` and `Response`.
 *
 * @param limits - the mounted limits, in order. They wrap the returned handler
 */
export function handlerUnderTest(
  limits: readonly HandlerLimit[],
  { work, atEnd }: HandlerSurroundings,
): (request: Request) => Promise<Response> {
  const [first] = limits
  return async (request) => {
    const [, route = '', parameter = ''] = new URL(request.url).pathname.split('/')
    const decision = limits.at(-1)?.decision(request)
    const chargeAtEnd = (units: () => number) => {
      atEnd(request, () => {
        if (decision !== undefined) first?.throttler.charge(decision, units())
      })
    }
    switch (parameter === '' ? `/${route}` : `/${route}/`) {
      case '/':
        return new Response('hello')
      case '/context':
        return Response.json(
          decision === undefined ? null : { allowed: decision.allowed, remaining: decision.remaining, policy: decision.policy?.name },
        )
      case '/users/':
        return new Response('user')
      case '/stream':
        return streamed(['one', 'two', 'three'], () => {
          decision?.used?.({ tokens: 11 })
          return 'close'
        })
      case '/slow':
        return streamed(['wait'], () => {
          decision?.used?.({ tokens: 4 })
          return 'stay'
        })
      case '/status/': {
        const status = Number(parameter)
        return new Response([204, 304].includes(status) ? null : 'done', { status })
      }
      case '/bytes/':
        chargeAtEnd(() => Number(parameter))
        return new Response('x'.repeat(Number(parameter)))
      case '/busy/': {
        const began = performance.now()
        chargeAtEnd(() => performance.now() - began)
        await new Promise((resolve) => setTimeout(resolve, Number(parameter)))
        return new Response('done')
      }
      case '/work':
        await work()
        return new Response('done')
      case '/peek':
        return Response.json(await peekThrice(async () => first?.peek(request)))
      case '/throw':
        throw Object.assign(new Error('teapot'), { status: 418 })
      default:
        return new Response('not found', { status: 404 })
    }
  }
}

/** A response in pieces. `then` is called after the last piece was taken. */
function streamed(pieces: readonly string[], then: () => 'close' | 'stay'): Response {
  const left = pieces.map((piece) => new TextEncoder().encode(piece))
  return new Response(
    new ReadableStream({
      pull(controller) {
        const piece = left.shift()
        if (piece !== undefined) return controller.enqueue(piece)
        if (then() === 'close') return controller.close()
        return new Promise(() => {})
      },
    }),
  )
}
