import { EventEmitter } from 'node:events'
import type { Decision } from '../../src/decide/decision.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { DelayedRequest } from '../../src/http/delayed-request.ts'
import type { Patience } from '../../src/report/user-function.ts'
import type { Answering } from '../../src/report/when-ended.ts'
import { adapterOf } from '../../src/throttler/adapter-side.ts'
import type { Node, NodeOptions, Scene } from './nodes.ts'

/** A process that can delay requests. The code for it is loaded in real time. */
export async function holding(
  it: Scene,
  policy: PolicyOptions<never> | readonly PolicyOptions<never>[],
  options?: NodeOptions,
): Promise<Node> {
  const node = it.node(policy, options)
  await node.checkAsync('loads what holds requests')
  return node
}

interface Request {
  readonly request: unknown
  readonly response: Answering | undefined
  readonly patience: Patience
}

export interface Held {
  at: number | undefined
  decision: Decision | undefined
  error: unknown
}

/** Makes a request, and notes when it continues. */
export function ask(
  it: Scene,
  node: Node,
  key: string | readonly (string | undefined)[],
  request?: Partial<Request> | null,
  cost = 1,
): Held {
  const held: Held = { at: undefined, decision: undefined, error: undefined }
  const keys = typeof key === 'string' ? node.policies.map(() => key) : key
  const places = keys.flatMap((one, place) => (one === undefined ? [] : [place]))
  const holding =
    request === null
      ? null
      : new DelayedRequest(request?.request, request?.response, () => undefined, request?.patience ?? { clock: node.clock, timeout: 1_000 })
  const costs = keys.map(() => cost)
  Promise.resolve(adapterOf(node).decideAsync(keys, costs, places, places.length, undefined, holding)).then(
    (decision) => {
      held.at = it.world.time
      held.decision = decision
    },
    (error) => {
      held.at = it.world.time
      held.error = error
    },
  )
  return held
}

class Response extends EventEmitter {
  destroyed = false
  leave(): void {
    this.destroyed = true
    this.emit('close')
  }
}

export function leaving(): Response & Answering {
  return new Response() as Response & Answering
}
