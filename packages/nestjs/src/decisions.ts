import type { ExecutionContext } from '@nestjs/common'
import type { Decision } from '@weir/core'
import type { PolicyName } from '@weir/core/adapter'

// Not a property of the request: a Fastify request that gets one of another name becomes slow.
const decisions = new WeakMap<object, Decision>()

/** Weir's decision about the request, field or message of a context. */
export function decisionOf(context: ExecutionContext): Decision<PolicyName> | undefined {
  return decisions.get(placeOf(context)) as Decision<PolicyName> | undefined
}

/** Keeps it for `@ThrottleDecision()`, and for further guards on the way: a throttler counts once, wherever it stands. */
export function keepDecision(context: ExecutionContext, decision: Decision): void {
  decisions.set(placeOf(context), decision)
}

/** Guards of one field or message share a context; what decorates parameters gets another one, of the same request. */
function placeOf(context: ExecutionContext): object {
  return context.getType() === 'http' ? context.switchToHttp().getRequest() : context
}
