import { adapterOf } from '../throttler/adapter-side.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { type ClusterNode, LABEL, statusOf, statusOfAll } from './node-status.ts'
import { snapshot } from './snapshot.ts'
import { parseStatus } from './status-text.ts'

/**
 * Returns the live processes of the cluster as far as known, this process first. If it is called regularly, e.g. once a second, the others
 * are at most two heartbeats old. Processes report their status only while a program requests it.
 *
 * @example
 * import { cluster } from '@weir/core/inspect'
 * for (const { label, state } of cluster(throttler)) console.log(label, state)
 */
export function cluster(throttler: Throttler<string, never>): readonly ClusterNode[] {
  const { clock, state, startedAt, coordinator } = adapterOf(throttler).inspected
  const now = clock.monotonic()
  if (coordinator === undefined || state === 'idle' || state === 'closed') {
    return [{ ...statusOf(snapshot(throttler), LABEL, now - startedAt), ageMs: 0, self: true }]
  }
  const self = { ...statusOfAll(coordinator.throttlers, coordinator.startedAt, now), ageMs: 0, self: true }
  const others = coordinator.others(now).flatMap(({ status: text, age: ageMs }) => {
    const status = parseStatus(text)
    return status === undefined || status.node === self.node ? [] : [{ ...status, ageMs, self: false }]
  })
  return [self, ...others]
}
