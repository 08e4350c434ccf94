import type { Receipt } from '../budget/receipt.ts'
import type { Decision } from '../decide/decision.ts'

/**
 * Types the policy names of the decision that an adapter leaves on the request. Augment it once in a program. Without it, names are of type
 * `string`.
 *
 * @example
 * declare module '@weir/fastify' { // or '@weir/express', '@weir/koa', '@weir/core/adapter'
 *   interface WeirTypes {
 *     policy: 'everyone' | 'user'
 *   }
 * }
 * request.throttle?.policy?.name // 'everyone' | 'user' | undefined
 */
// biome-ignore lint/suspicious/noEmptyInterface: programs add to it
export interface WeirTypes {}

/** The names of policies as `WeirTypes` declares them, or `string` by default. */
export type PolicyName = WeirTypes extends { readonly policy: infer Name extends string } ? Name : string

/** The decision that a handler gets. With `estimate` it is a `Receipt`, by which the handler can report its use. */
export type HandlerDecision<Name extends string = PolicyName> = Decision<Name> &
  Partial<Pick<Receipt<Name>, 'isOpen' | 'used' | 'settle' | 'cancel'>>
