import type { Http2ServerResponse } from 'node:http2'
import { type CallHandler, type ExecutionContext, HttpException, type NestInterceptor } from '@nestjs/common'
import { handlerStarts } from '@weir/core/adapter'
import { finalize, type Observable } from 'rxjs'
import { type ResponseLike, rawOf } from './transport.ts'

/** The status that nginx logs for a request whose client has left. */
const CLIENT_CLOSED_REQUEST = 499

/** Reports when the handler of an HTTP request has ended, so that the request keeps its slots and reservations until then. */
export class HandlerEndInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'http') return next.handle()
    const response = context.switchToHttp().getResponse<ResponseLike>()
    const ended = handlerStarts(rawOf(response))
    if (ended === undefined) return next.handle()
    if (ended === null) throw new HttpException('The client has left before its request was handled.', CLIENT_CLOSED_REQUEST)
    endWithGoneReply(response, ended)
    return next.handle().pipe(finalize(ended))
  }
}

/** Reports the end if the client has left. Over HTTP/2 a Fastify reply that a handler returns or awaits never settles then. */
function endWithGoneReply(response: ResponseLike, ended: () => void): void {
  const reply = response as unknown as FastifyReplyLike
  const stream = reply.raw?.stream
  if (stream === undefined) return
  const { then } = reply
  // biome-ignore lint/suspicious/noThenProperty: a reply has it
  reply.then = (...args) => {
    if (stream.destroyed && !reply.sent) ended()
    return then.apply(reply, args)
  }
}

interface FastifyReplyLike {
  readonly raw?: Partial<Http2ServerResponse>
  readonly sent: boolean
  then(...args: unknown[]): unknown
}
