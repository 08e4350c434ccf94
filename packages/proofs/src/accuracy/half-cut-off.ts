import type { Fault, FaultPlan } from '@weir/testing'
import { atMost, type Goal, percent, pooled } from './goal.ts'
import { MIDDLE, NODES, nameOf, scenarioOf } from './settings.ts'
import { WINDOWS } from './weights.ts'

/** The time for which processes are cut off, in intervals of 10 s. */
const LENGTH = 2

/** A part of the processes can't reach the store, and the others don't notice. */
export const partitionGoals: readonly Goal[] = [
  {
    id: 'N10',
    title: 'Half of the nodes are cut off from the store for 20 s',
    cases: (size) =>
      WINDOWS.map(({ name, policy, overshoot }) => ({
        name: `${name}, x100, ${nameOf(MIDDLE)}`,
        scenarios: [scenarioOf(MIDDLE, 100, size, { policy: { ...MIDDLE, ...policy }, faults: halfCutOff })],
        judge: (results) => [atMost('overshoot max', percent(overshoot(pooled(results)).max), 90)],
      })),
  },
]

/** Cuts off every other process, from a scattered moment of every sixth interval on. */
const halfCutOff: FaultPlan = {
  name: `half of the nodes cut off for ${LENGTH} intervals, from scattered moments`,
  plan: ({ intervals }) => {
    const list: Fault[] = []
    for (let cycle = 1; 6 * cycle < intervals; cycle++) {
      const from = 6 * cycle - 3 + ((cycle * 0.6180339887498949) % 1)
      for (let node = 0; node < NODES; node += 2) list.push({ kind: 'partition', from, until: from + LENGTH, node })
    }
    return list
  },
}
