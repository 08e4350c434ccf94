import type { ClusterNode } from '@weir/core/inspect'
import type { Point } from './protocol.ts'

/**
 * Joins the history that each process kept from before the dashboard was open: a point for each slot, oldest first. Slots of processes end
 * at different moments, so each slot counts for the nearest slot of this process. A slot that a process has not reported yet is unknown.
 *
 * @param time milliseconds since the Unix epoch
 */
export function earlier(nodes: readonly ClusterNode[], time: number): Point[] {
  const self = nodes.find((node) => node.self)?.requests.history
  if (self === undefined) return []
  const { slot, ended } = self
  const length = Math.max(0, ...nodes.map(({ requests }) => requests.history.allowed.length))
  const allowed = new Array<number>(length).fill(0)
  const rejected = new Array<number>(length).fill(0)
  let unknown = 0
  for (const { ageMs: age, requests } of nodes) {
    const { history } = requests
    const shift = Math.round((age + history.ended - ended) / slot)
    unknown = Math.max(unknown, shift)
    for (const [i, count] of history.allowed.entries()) {
      const at = i + shift
      if (at < 0 || at >= length) continue
      allowed[at] = (allowed[at] as number) + count
      rejected[at] = (rejected[at] as number) + (history.rejected[i] ?? 0)
    }
  }
  const seconds = slot / 1_000
  return allowed
    .map((count, i): Point => {
      const end = time - ended - i * slot
      return i < unknown ? [end, null, null, null] : [end, count / seconds, (rejected[i] as number) / seconds, null]
    })
    .reverse()
}
