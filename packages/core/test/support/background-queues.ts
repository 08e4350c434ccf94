import { tokenBucket } from '../../src/algorithms/token-bucket/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { type Node, type NodeOptions, type Scene, scene } from './nodes.ts'
import { type Waiting, waiting } from './waiting.ts'

export interface BackgroundNodes extends Scene {
  readonly nodes: readonly Node[]
  readonly queues: readonly Waiting[]
}

/** Connected processes that count a bucket together in the background, two seconds after they started. */
export async function backgroundNodes(
  count: number,
  more: Partial<PolicyOptions<never>> = {},
  roundTrip = 2,
  options: NodeOptions = {},
): Promise<BackgroundNodes> {
  const it = scene()
  it.store.roundTrip = roundTrip
  const policy = { limit: 10, interval: 1_000, algorithm: tokenBucket({ burst: 1 }), ...more } as const
  const nodes = Array.from({ length: count }, () => it.node(policy, options))
  for (const node of nodes) node.start()
  const queues: Waiting[] = []
  for (const node of nodes) queues.push(await waiting(it, node))
  await it.world.runTo(2_100)
  return { ...it, nodes, queues }
}
