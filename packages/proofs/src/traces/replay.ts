import { createThrottler, fixedWindow, slidingWindow } from '@weir/core'
import { simulate, trace } from '@weir/testing'
import type { Window } from './exact.ts'
import type { Request } from './trace-file.ts'

export interface Replay {
  readonly window: Window
  readonly limit: number
  readonly interval: number
  readonly nodes: number
}

/** A trace contains whole seconds only. Requests are sent in the middle of their second, so that no boundary depends on chance. */
const MIDDLE = 500

/** Sends a trace to simulated processes, each request to a random one. Returns true for each allowed request. */
export async function replay(requests: readonly Request[], { window, limit, interval, nodes }: Replay): Promise<readonly boolean[]> {
  const decisions: boolean[] = []
  const last = requests.at(-1)?.time ?? 0
  await simulate({
    policy: { limit, interval, algorithm: window === 'sliding' ? slidingWindow() : fixedWindow() },
    nodes,
    warmup: 0,
    intervals: Math.floor(last / interval) + 1,
    load: trace(requests.map(({ time, client }) => ({ time: time + MIDDLE, key: client }))),
    watch: [],
    // Decisions are counted here, so each request must be checked.
    shortcut: false,
    node: ({ policy, store, clock, random }) => {
      // Over days a heartbeat each second would be most of the work, and no process starts or ends.
      const throttler = createThrottler({ policies: [policy], store, clock, random, heartbeat: 10_000 })
      return {
        nodeId: throttler.nodeId,
        start: () => throttler.start(),
        close: () => throttler.close(),
        check: (key, cost) => {
          const decision = throttler.check(key, cost)
          decisions.push(decision.allowed)
          return decision
        },
      }
    },
  })
  return decisions
}
