import type { ExecutionContext } from '@nestjs/common'
import type { Decision } from '@weir/core'
import type { HandlerDecision } from '@weir/core/adapter'

// A map instead of a property of the request, because an additional property makes a Fastify request slow.
const decisions = new WeakMap<object, Decision>()

/** Weir's decision about the request, field or message of a context. */
export function decisionOf(context: ExecutionContext): HandlerDecision | undefined {
  return decisions.get(placeOf(context)) as HandlerDecision | undefined
}

/** Keeps the decision for `@ThrottleDecision()` and for further guards, because a throttler counts a request only once. */
export function keepDecision(context: ExecutionContext, decision: Decision): void {
  decisions.set(placeOf(context), decision)
}

/** The object that a decision belongs to. Guards of a field or message share a context, but parameter decorators get another one. */
function placeOf(context: ExecutionContext): object {
  return context.getType() === 'http' ? context.switchToHttp().getRequest() : context
}
