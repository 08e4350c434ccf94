import { expect, vi } from 'vitest'
import type { Decision } from '../../src/decide/decision.ts'
import type { Node, Scene } from './nodes.ts'

/** A policy whose requests the store decides. */
export const CENTRAL = { limit: 10, interval: 10_000, coordination: 'central' as const }

/** Starts processes, and waits until they are connected to the store. */
export async function started(it: Scene, ...nodes: Node[]): Promise<void> {
  const ready = it.store.deciders + nodes.length
  for (const node of nodes) node.start()
  // The code that sends requests to the store is loaded first, which takes real time.
  await vi.waitFor(() => expect(it.store.deciders).toBe(ready), { timeout: 4_000, interval: 5 })
  // Two heartbeats pass, so that each process counts the others.
  await it.world.run(1_100)
}

/** The decisions of requests that are made at once. */
export async function ask(
  it: Scene,
  node: Node,
  key: string,
  count: number,
  options?: Parameters<Node['checkAsync']>[1],
): Promise<Decision[]> {
  const all = Array.from({ length: count }, () => node.checkAsync(key, options))
  let done = false
  const decided = Promise.all(all).finally(() => {
    done = true
  })
  for (let waited = 0; !done && waited < 200; waited++) await it.world.run(1)
  return await decided
}

export const allowed = (decisions: readonly Decision[]): number => decisions.filter(({ allowed }) => allowed).length
