import { leakyBucket } from '../../src/algorithms/leaky-bucket/index.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { started } from './central.ts'
import { type Node, type NodeOptions, type Scene, scene } from './nodes.ts'
import { type Outcome, startTimes, type Waiting, waiting } from './waiting.ts'

export interface CentralNodes extends Scene {
  readonly nodes: readonly Node[]
  readonly queues: readonly Waiting[]
  /** Requests that the store has received since the processes started, by the units of each. */
  asked(): readonly number[]
}

/** Processes whose requests the store decides, at the start of an interval. `more` is for one policy, or for each of several. */
export async function central(
  count: number,
  more: Partial<PolicyOptions<never>> | readonly Partial<PolicyOptions<never>>[] = {},
  roundTrip = 2,
  options: NodeOptions = {},
): Promise<CentralNodes> {
  const it = scene()
  it.store.roundTrip = roundTrip
  const policies = [more].flat().map((own) => ({ limit: 100, interval: 1_000, coordination: 'central', ...own }) as const)
  const nodes = Array.from({ length: count }, () => it.node(policies, options))
  await started(it, ...nodes)
  const queues: Waiting[] = []
  for (const node of nodes) queues.push(await waiting(it, node))
  await it.world.runTo(20_000)
  const before = it.store.decided.length
  const asked = () => it.store.decided.slice(before).map(({ request }) => request.questions[0]?.units ?? 0)
  return { ...it, nodes, queues, asked }
}

/** Makes many requests at once, the same number at each process. */
export function flood(queues: readonly Waiting[], requests: number): void {
  for (let i = 0; i < requests; i++) queues[i % queues.length]?.acquire('a', { timeout: '30s' })
}

export const endedOf = ({ queues }: CentralNodes): readonly Outcome[] => queues.flatMap((queue) => queue.ended)

/** The times at which requests of all processes started, in their order. */
export const startsOf = (it: CentralNodes): number[] => startTimes(endedOf(it))

/** Buckets, with the units that each allows at once for a limit of 100. */
export const BUCKETS = [
  { name: 'leaky', algorithm: leakyBucket(), atOnce: 1 },
  { name: 'leaky, none may wait in it', algorithm: leakyBucket({ burst: 0 }), atOnce: 1 },
  { name: 'leaky, some at once', algorithm: leakyBucket({ burst: 20, immediate: 10 }), atOnce: 11 },
  { name: 'token', algorithm: tokenBucket(), atOnce: 100 },
  { name: 'token, few', algorithm: tokenBucket({ burst: 5 }), atOnce: 5 },
]
