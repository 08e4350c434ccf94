import {
  bursts,
  crashes,
  doubling,
  moving,
  outages,
  restarts,
  type Scenario,
  type SimulationResult,
  sticky,
  uniform,
  uniformBetween,
  zipf,
} from '@weir/testing'
import { atMost, type Figure, type Goal, type GoalCase, percent, pooled, type Size } from './goal.ts'
import { MIDDLE, nameOf, type Setting, SMALL, scenarioOf } from './settings.ts'

/** Exactly the limit in every case, because units without a lease are rejected. */
const LEASES = { coordination: 'leased', failMode: 'closed' } as const

function leased(setting: Setting, times: number, size: Size, more: Partial<Scenario> = {}): Scenario {
  return scenarioOf(setting, times, size, { policy: { ...setting, ...LEASES }, ...more })
}

function isLeased({ policy }: SimulationResult): boolean {
  return policy.coordination === 'leased'
}

function overshoot(results: readonly SimulationResult[]): Figure {
  return atMost('overshoot max', percent(pooled(results).overshoot.max), 0)
}

/** Requests that were rejected while units were left in the store or in a live process. */
function rejectedWithRoom(results: readonly SimulationResult[], most = 0.5): Figure {
  const { rejectedWithRoom: count, requests } = pooled(results)
  return atMost('rejected while units are left', percent(count / requests), most)
}

/** The same load with leases and in the background, to compare the costs. */
function beside(times: number, size: Size, more: Partial<Scenario> = {}): readonly Scenario[] {
  return [leased(MIDDLE, times, size, more), scenarioOf(MIDDLE, times, size, more)]
}

function exchanges(results: readonly SimulationResult[], most: number): Figure {
  const mine = pooled(results.filter(isLeased)).operations
  const others = pooled(results.filter((result) => !isLeased(result))).operations
  return atMost('exchanges, times those in the background', mine / others, most, 'ops')
}

function waited(results: readonly SimulationResult[], most: number): Figure {
  return atMost('allowed requests that waited', percent(pooled(results).waited), most)
}

const LOADS = [{ times: 0.5, waits: 0.1 }, { times: 0.9 }, { times: 1.1, waits: 4 }, { times: 2 }] as const satisfies readonly {
  readonly times: number
  readonly waits?: number
}[]

/** Goals of leases. */
export const leaseGoals: readonly Goal[] = [
  {
    id: 'L1',
    title: 'Leases: exactly the limit, few waits, not many exchanges',
    cases: (size) =>
      LOADS.flatMap(({ times, ...of }) =>
        [uniform, zipf()].map(
          (balancing): GoalCase => ({
            name: `x${times}, ${balancing.name}, ${nameOf(MIDDLE)}`,
            scenarios: beside(times, size, { balancing }),
            judge: (results) => {
              const mine = results.filter(isLeased)
              return [overshoot(mine), rejectedWithRoom(mine), ...('waits' in of ? [waited(mine, of.waits)] : []), exchanges(results, 2)]
            },
          }),
        ),
      ),
  },
  {
    id: 'L2',
    title: 'Leases in a flood of a hundred times the limit',
    cases: (size) => [
      {
        name: `x100, ${nameOf(MIDDLE)}`,
        scenarios: beside(100, size),
        judge: (results) => [overshoot(results.filter(isLeased)), exchanges(results, 4)],
      },
    ],
  },
  {
    id: 'L3',
    title: 'Leases: few units for many nodes, and traffic that moves',
    cases: (size) => [
      {
        name: `x1.1, ${nameOf(SMALL)}`,
        scenarios: [leased(SMALL, 1.1, size)],
        judge: (results) => [overshoot(results), rejectedWithRoom(results)],
      },
      ...[moving(), moving(0.5), sticky].map(
        (balancing): GoalCase => ({
          name: `x1.1, ${balancing.name}, ${nameOf(MIDDLE)}`,
          scenarios: [leased(MIDDLE, 1.1, size, { balancing })],
          judge: (results) => [overshoot(results), rejectedWithRoom(results)],
        }),
      ),
    ],
  },
  {
    id: 'L4',
    title: 'A thousand requests within 10 ms, five of which may pass',
    cases: (size) => [
      {
        name: '5 per 10 s',
        scenarios: [
          leased({ limit: 5, interval: 10_000 } as never, 1, size, { load: bursts({ size: 1_000, every: 1, phase: 0.3, width: 10 }) }),
        ],
        judge: (results) => [overshoot(results), atMost('units not allowed', percent(1 - pooled(results).allowedOfExact), 0)],
      },
    ],
  },
  {
    id: 'L5',
    title: 'Leases while nodes crash, restart, come and go',
    cases: (size) =>
      [crashes, restarts, doubling()].map((faults) => ({
        name: `${faults.name}, x2, ${nameOf(MIDDLE)}`,
        scenarios: [leased(MIDDLE, 2, size, { faults })],
        judge: (results) => [overshoot(results)],
      })),
  },
  {
    id: 'L6',
    title: 'Leases over a network that loses, doubles, delays and reorders',
    cases: (size) =>
      (
        [
          ['5 % lost and doubled', { loss: 0.05, announcementLoss: 0.05, duplication: 0.05 }],
          ['1 % of messages take 0.3 to 2 s', { reordering: 0.01, stray: uniformBetween(300, 2_000) }],
          ['no announcements', { announcementLoss: 1 }],
          ['round trips of 20 to 80 ms', { latency: uniformBetween(10, 40) }],
        ] as const
      ).map(([name, network]) => ({
        name: `${name}, x2, ${nameOf(MIDDLE)}`,
        scenarios: [leased(MIDDLE, 2, size, { network })],
        judge: (results) => [overshoot(results)],
      })),
  },
  {
    id: 'L7',
    title: 'Leases while the store is away, and with clocks that are wrong',
    cases: (size) => [
      ...(['reject', 'hang'] as const).map(
        (mode): GoalCase => ({
          name: `it is away (${mode}), x2, ${nameOf(MIDDLE)}`,
          scenarios: [leased(MIDDLE, 2, size, { faults: outages({ length: 0.7, pause: 2, mode }) })],
          judge: (results) => [overshoot(results)],
        }),
      ),
      {
        name: `clocks up to 2 s wrong, x2, ${nameOf(MIDDLE)}`,
        scenarios: [leased(MIDDLE, 2, size, { clocks: (_place, random) => ({ offset: 4_000 * random.next() - 2_000 }) })],
        judge: (results) => [overshoot(results), rejectedWithRoom(results)],
      },
    ],
  },
]
