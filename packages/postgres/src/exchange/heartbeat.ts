import type { BlockState, HeartbeatReply, HeartbeatRequest } from '@weir/core/sync'
import { asciiOf, textOf } from '../keys/keys.ts'
import { asArray, asNumber, asObject, asRemaining, asText, asWhole, understood } from '../reply/check.ts'
import { blockOf, noticeOf, totalOf } from './announcements.ts'
import type { PolicyNames } from './policies.ts'

/** The heartbeat's query. An invalid cursor requests everything, like a missing one. */
export function beatOf(
  { ttl, cursor, policies, status, rules, watch, leases }: HeartbeatRequest,
  names: PolicyNames,
): Record<string, unknown> {
  const since = cursor === undefined || !/^\d{1,15}$/.test(cursor) ? undefined : Number(cursor)
  return {
    ttl,
    policies: policies.map((policy) => names.of(policy)),
    ...(since === undefined ? {} : { cursor: since }),
    ...(cursor === undefined && { starts: true }),
    ...(status !== undefined && { status: asciiOf(status) }),
    ...(rules !== undefined && { rules: asciiOf(rules) }),
    ...(watch && { watch: true }),
    ...(leases && { leases: true }),
  }
}

/** The result of a heartbeat, and whether more blocks are left for another one. */
export function heartbeatOf(
  value: unknown,
  request: HeartbeatRequest,
  generation: string,
  names: PolicyNames,
  setBack: number,
): { readonly reply: HeartbeatReply; readonly more: boolean } {
  const { nodes, cursor, more, blocks, hot, watched, ahead, statuses, rules, leases } = asObject(value)
  const reply: HeartbeatReply = {
    nodes: Math.max(1, asWhole(nodes)),
    generation,
    cursor: String(asWhole(cursor)),
    blocks: listed(blocks, (one): BlockState => {
      const block = blockOf(one, names)
      return { ...block, remaining: Math.max(0, block.remaining - setBack) }
    }),
    hot: listed(hot, (one) => totalOf(one, names)),
    ...(request.leases && { leases: listed(leases, (one) => noticeOf(one, names)) }),
    watched: watched === true,
    ...(typeof ahead === 'number' && { ahead: asNumber(ahead) }),
    ...(request.watch && {
      statuses: listed(statuses, ([node, age, status]) => ({
        node: asText(node),
        age: asRemaining(age),
        status: textOf(asText(status)),
      })),
    }),
    ...(request.rules !== undefined && {
      rules: listed(rules, ([node, text]) => ({ node: asText(node), rules: textOf(asText(text)) })),
    }),
  }
  return { reply, more: more === true }
}

/** Reads a list. An invalid element is left out, and the others are kept. */
function listed<T>(value: unknown, parse: (one: readonly unknown[]) => T): T[] {
  return asArray(value).flatMap((one) => understood(() => parse(asArray(one))) ?? [])
}
