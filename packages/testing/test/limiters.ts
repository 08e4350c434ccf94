import type { NodeContext, NodeDecision, SimulatedNode } from '../src/index.ts'

/** Counts intervals by its process's wall clock. */
class IntervalCounter {
  #ordinal = -1
  #used = 0

  decide(now: number, interval: number, limit: number, cost: number, count: boolean): NodeDecision {
    const ordinal = Math.floor(now / interval)
    if (ordinal !== this.#ordinal) {
      this.#ordinal = ordinal
      this.#used = 0
    }
    const allowed = this.#used + cost <= limit
    if (allowed && count) this.#used += cost
    return { allowed, reason: allowed ? 'ok' : 'limit', retryAfterMs: allowed ? 0 : (ordinal + 1) * interval - now }
  }
}

function limiter(counter: IntervalCounter, { clock, policy, place }: NodeContext): SimulatedNode {
  const decide = (cost: number, count: boolean) => counter.decide(clock.now(), Number(policy.interval), Number(policy.limit), cost, count)
  return {
    nodeId: `node-${place}`,
    check: (_key, cost = 1) => decide(cost, true),
    checkAsync: async (_key, cost = 1) => decide(cost, true),
    peek: (_key, cost = 1) => decide(cost, false),
    close: async () => {},
  }
}

/** Processes that don't share anything: each allows the whole limit. */
export function alone(context: NodeContext): SimulatedNode {
  return limiter(new IntervalCounter(), context)
}

/** Processes that share one counter without a delay, so they are exact. */
export function central(): (context: NodeContext) => SimulatedNode {
  const counter = new IntervalCounter()
  return (context) => limiter(counter, context)
}

/** Correct clocks that show fractions of a millisecond, so that exact limiters are exact at boundaries too. */
export const exactClocks = () => ({ resolution: 0 })
