import { type ExecutionContext, HttpException } from '@nestjs/common'
import type { Decision } from '@weir/core'
import { type Guard, type Rejection, ThrottledError } from '@weir/core/adapter'
import type { NestArgs } from './options.ts'

/**
 * The exception for a rejected request or field, which the application's exception filters receive with `throwOnReject: true`. It is an
 * HttpException with the status of the rejection. `Retry-After` and the limit fields are already set on the response.
 */
export class ThrottledException extends HttpException {
  /** The decision that rejected the request, with the reason. */
  readonly decision: Decision
  /** The response in a form that the client accepts. */
  readonly rejection: Rejection

  constructor(rejection: Rejection) {
    const error = new ThrottledError(rejection)
    super({ statusCode: rejection.status, message: error.message }, rejection.status, { cause: error })
    this.decision = rejection.decision
    this.rejection = rejection
  }
}

/** The exception that the module's own filter answers. */
export class AnsweredException extends ThrottledException {
  readonly #guard: Guard<ExecutionContext, NestArgs>
  readonly #context: ExecutionContext

  constructor(rejection: Rejection, guard: Guard<ExecutionContext, NestArgs>, context: ExecutionContext) {
    super(rejection)
    this.#guard = guard
    this.#context = context
  }

  get guard(): Guard<ExecutionContext, NestArgs> {
    return this.#guard
  }

  get context(): ExecutionContext {
    return this.#context
  }
}
