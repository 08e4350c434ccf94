import type { ServerResponse } from 'node:http'
import { Catch, type ExceptionFilter } from '@nestjs/common'
import type { Rejection } from '@weir/core/adapter'
import { AnsweredException } from './exception.ts'
import { type ResponseLike, rawOf } from './transport.ts'

/** Answers rejected requests with the `handler` of the options, or in a form that the client accepts. */
export class ThrottleFilter implements ExceptionFilter<AnsweredException> {
  async catch({ rejection, guard, context }: AnsweredException): Promise<void> {
    const response = context.switchToHttp().getResponse<ResponseLike>()
    const raw = rawOf(response)
    if (raw.headersSent) return
    setStatus(response, rejection.status)
    const became = await guard.handle(rejection, [context], raw)
    if (became === 'failed') answerStandard(response, raw, rejection)
    if (became === 'answered')
      guard.expect(
        () => raw.headersSent || raw.writableEnded,
        () => answerStandard(response, raw, rejection),
      )
  }
}
// Calls the decorator as a function, because the compiler that builds this package does not support decorators.
Catch(AnsweredException)(ThrottleFilter)

function setStatus(response: ResponseLike, status: number): void {
  const reply = response as ResponseLike & { status(status: number): unknown }
  reply.status(status)
}

/** Writes the standard answer, and removes headers that a failed handler may have set for its own body. */
function answerStandard(response: ResponseLike, raw: ServerResponse, { status, type, body }: Rejection): void {
  if (raw.headersSent) return
  setStatus(response, status)
  for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) {
    raw.removeHeader(name)
    if (response.raw !== undefined) (response as unknown as { removeHeader(name: string): unknown }).removeHeader(name)
  }
  response.header('Content-Type', type)
  if (response.raw === undefined) raw.end(raw.req.method === 'HEAD' ? undefined : body)
  else (response as unknown as { send(body: string): unknown }).send(body)
}
