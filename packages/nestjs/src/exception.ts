import { type ExecutionContext, HttpException } from '@nestjs/common'
import type { Decision } from '@weir/core'
import { type Guard, type Refusal, ThrottledError } from '@weir/core/http'
import type { NestArgs } from './options.ts'

/**
 * A refused request or field, as the application's filters of exceptions get it with `onRefused: 'throw'`: an HttpException with the
 * status of the refusal. `Retry-After` and the limit fields are set on the response already.
 */
export class ThrottledException extends HttpException {
  /** What was decided, and why. */
  readonly decision: Decision
  /** The answer in the form that the client accepts. */
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    const error = new ThrottledError(refusal)
    super({ statusCode: refusal.status, message: error.message }, refusal.status, { cause: error })
    this.decision = refusal.decision
    this.refusal = refusal
  }
}

/** One that the module's own filter answers. */
export class AnsweredException extends ThrottledException {
  readonly #guard: Guard<ExecutionContext, NestArgs>
  readonly #context: ExecutionContext

  constructor(refusal: Refusal, guard: Guard<ExecutionContext, NestArgs>, context: ExecutionContext) {
    super(refusal)
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
