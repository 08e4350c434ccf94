import { type CallHandler, type ExecutionContext, HttpException, type NestInterceptor } from '@nestjs/common'
import { handlerStarts } from '@weir/core/http'
import { finalize, type Observable } from 'rxjs'
import { type ResponseLike, rawOf } from './transport.ts'

/** What nginx logs for a request whose client has left. */
const CLIENT_CLOSED_REQUEST = 499

/** Reports when the handler of an HTTP request has ended, so that the request keeps its slots (`concurrency()`) until then. */
export class HandlerEndInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'http') return next.handle()
    const ended = handlerStarts(rawOf(context.switchToHttp().getResponse<ResponseLike>()))
    if (ended === undefined) return next.handle()
    if (ended === null) throw new HttpException('The client has left before its request was handled.', CLIENT_CLOSED_REQUEST)
    return next.handle().pipe(finalize(ended))
  }
}
