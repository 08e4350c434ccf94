import { createThrottler, type Store } from '@weir/core'
import { type SimulatedNode, simulate } from '@weir/testing'
import { attempt, beats } from '../../src/accuracy/attack/search.ts'
import { format, linesOf } from '../../src/accuracy/report.ts'
import { MIDDLE, scenarioOf } from '../../src/accuracy/settings.ts'
import { goalOf } from '../../src/accuracy/task.ts'
import { search } from '../../src/model/search.ts'
import { SHORT } from '../../src/model/searches.ts'
import { neverTooMuch } from './buckets.ts'
import { resetsHold } from './resets.ts'

/**
 * Runs one case of a goal for a short time. Returns failures as sentences.
 *
 * @param most - the number of scenarios to run
 */
function goal(id: string, name: string, intervals: number, seed = 1, most = Number.POSITIVE_INFINITY): () => Promise<readonly string[]> {
  return async () => {
    const goal = goalOf(id)
    const one = goal.cases({ intervals, quick: true }).find((candidate) => candidate.name === name)
    if (one === undefined) throw new Error(`Goal ${id} has no case ${name}`)
    const results = []
    for (const scenario of one.scenarios.slice(0, most)) results.push(await simulate({ ...scenario, seed }))
    const figures = one.measure === undefined ? one.judge(results) : await one.measure(seed)
    return linesOf(goal, one, figures)
      .filter(({ verdict }) => verdict === 'FAILS')
      .map((line) => format(line).replace(/ +/g, ' '))
  }
}

/** Checks that processes don't all write in the same moment when a span ends: no more than half of them within a millisecond. */
async function spreadWrites(): Promise<readonly string[]> {
  const writes = new Map<number, Set<string>>()
  const node: NonNullable<Parameters<typeof simulate>[0]['node']> = ({ policy, store, clock, random }): SimulatedNode => {
    const watched: Store = {
      ...store,
      kind: store.kind,
      open: (self) => {
        const connection = store.open(self)
        return {
          sync: (request) => {
            if (request.entries.length > 0) {
              const at = Math.floor(clock.now())
              writes.set(at, (writes.get(at) ?? new Set()).add(self.id))
            }
            return connection.sync(request)
          },
          close: () => connection.close(),
        }
      },
    }
    return createThrottler({ policies: [policy], store: watched, clock, random })
  }
  await simulate({ ...scenarioOf(MIDDLE, 0.5, { intervals: 6, quick: true }), node })
  const most = Math.max(...[...writes.values()].map((nodes) => nodes.size))
  return most <= 6 ? [] : [`${most} of 12 nodes wrote within one millisecond`]
}

/**
 * Checks that the units which processes have not sent stay within the documented bound, even if only some of them have each other's
 * counts.
 */
async function heldBack(): Promise<readonly string[]> {
  const target = { window: 'fixed', limit: 1_000, nodes: 12, roundTrip: 1 } as const
  const volley = { width: 0.05, cost: 1 }
  const volleys = [
    { ...volley, at: 1, requests: 11 * 60, first: 1, nodes: 11 },
    { ...volley, at: 1.06, requests: 1_200, first: 0, nodes: 1 },
  ]
  const one = await attempt(target, 'slow', { seed: 1, volleys })
  return beats(one) ? [`${one.allowed} allowed, at most ${one.most}`] : []
}

/**
 * Checks that the store's final count of an interval equals the units that were allowed in it, except for unsent units of keys far
 * below their limit.
 */
async function bookedWhereCounted(): Promise<readonly string[]> {
  const { measured, policy } = await simulate(scenarioOf(MIDDLE, 0.5, { intervals: 8, quick: true }, { nodes: 3 }))
  return measured.flatMap(({ index, allowed, stored = 0 }) =>
    stored > allowed || allowed - stored > 0.03 * policy.limit
      ? [`The store has ${stored} of interval ${index}, in which ${allowed} were allowed`]
      : [],
  )
}

const VOLLEYS = 'bursts of 200 every 0.03333333333333333 intervals, phase 0.03266666666666666, 2 ms wide, 1000 per 10 s'

/** All events of leases in one of the short searches. */
function leases(name: string): () => Promise<readonly string[]> {
  return () => Promise.resolve(SHORT.filter((options) => options.name === name).flatMap((options) => search(options.model).fault ?? []))
}

export const checks = {
  'resets hold': resetsHold,
  'leases: two nodes': leases('two nodes'),
  'leases: a change of the interval': leases('a change of the interval'),
  'leases: a loss of data': leases('a loss of data'),
  'slots: two nodes': leases('slots: two nodes'),
  'slots: silence': leases('slots: silence'),
  'slots: silence of a busy node': leases('slots: silence of a busy node'),
  'slots: a crash': leases('slots: a crash'),
  'budgets: a crash': leases('budgets: a crash'),
  'budgets: a call that uses more': leases('budgets: a call that uses more'),
  'falsely rejected': goal('2', 'zipf', 1),
  'a little over the limit, 100': goal('3', 'x1.1, uniform, 100 per 60 s', 20),
  flood: goal('5', 'x100, uniform, 1000 per 10 s', 8, 3),
  'cold flood': goal('7', 'boundary, 1000 per 10 s', 6),
  'nodes doubled': goal('10', '1000 per 10 s', 10),
  'booked where counted': bookedWhereCounted,
  'the store is back, x100': goal('15', 'x100, uniform, 1000 per 10 s', 10, 1, 1),
  'the store is away, x100': goal('14', 'x100, uniform, 1000 per 10 s', 10, 1, 1),
  'after a cooldown': goal('16', 'cooldown of 0.5 intervals, uniform, x1.1 to x100, 1000 per 10 s', 6),
  'wrong clocks': goal('17', '±2 s, x2, 1000 per 10 s', 6),
  'hardly any load': goal('18', 'uniform, 1000 per 10 s', 6),
  "last span's counts": goal('21', "requests in every other interval's last span only, 100 per 60 s", 10),
  'writes are spread': spreadWrites,
  'expensive requests': goal('N1', 'fixed, costs 1 to 50, x1.1, 12 nodes, 100 per 60 s', 40),
  'expensive requests, x100': goal('N1', 'fixed, costs 1 to 50, x100, 12 nodes, 100 per 60 s', 20),
  'the store hangs, x100': goal('N2', 'fixed, it hangs, x100, 1000 per 10 s', 40),
  'killed every hour': goal('N3', 'fixed, 3 nodes, x2, 1000 per day', 2),
  'moved twice': goal('N8', 'x1.1, 1000 per 10 s', 20),
  charged: goal('N7', 'fixed, one charge in three intervals, x2 besides, 100 per 60 s', 6),
  'sliding: expensive requests': goal('N1', 'sliding, costs 1 to 50, x1.1, 12 nodes, 100 per 60 s', 40),
  'sliding: room': goal('S1', 'uniform', 2),
  'sliding: flood': goal('S5', 'x100, uniform, 1000 per 10 s', 6),
  'sliding: a little over': goal('S4', 'x1.1, uniform, 100 per 60 s', 20),
  'sliding: twice the limit': goal('S4', 'x2, uniform, 100 per 60 s', 20),
  'sliding: honest bursts': goal('N4', '90 requests within a second, once a minute, 100 per 60 s', 40),
  'sliding: volleys': goal('S8', VOLLEYS, 6),
  'sliding: flood on an idle key': goal('S7', 'x100, straddling, zipf 1, 1000 per 10 s', 8),
  'sliding: room, zipf': goal('S1', 'zipf', 2),
  'sliding: half of the nodes cut off': goal('N10', 'sliding, x100, 1000 per 10 s', 12),
  'half of the nodes cut off': goal('N10', 'fixed, x100, 1000 per 10 s', 12),
  volley: goal('N5', '5 per 10 s, 3 nodes, leased', 4),
  'held back': heldBack,
  'sliding: the store is away': goal('S14', 'x2, 1000 per 10 s', 13),
  'sliding: nodes doubled': goal('S9', 'doubled at x100, 1000 per 10 s', 20),
  'sliding: operations, x100': goal('S12', 'x100, 1000 per 10 s', 6),
  'sliding: operations, x0.1': goal('S12', 'x0.1, 1000 per 10 s', 6),
  'bucket: the store is never above what was allowed': neverTooMuch('trickles', 'outages'),
  'bucket: the store is never above what was allowed, late': neverTooMuch('one node cut off'),
  'bucket: twice the limit': goal('B6', 'x2, uniform, 1000 per 10 s', 12),
  'bucket: twice the limit, outages': goal('B17', 'x2, 1000 per 10 s', 14),
  'bucket: flood on a small limit': goal('B6', 'x100, uniform, 100 per 60 s', 30),
  'bucket: operations in a flood': goal('B8', 'x100, 1000 per 10 s', 6),
  'bucket: operations of a quiet key': goal('B8', 'x0.1, 1000 per 10 s', 6),
  'bucket: surges': goal('B11', 'x0.5 to x10, zipf, 1000 per 10 s', 12),
  'bucket: operations below a small burst': goal('B13', 'x0.9, 1000 per 10 s', 6),
  'bucket: below a burst of ten': goal('B4', 'x0.8 and x0.9, 12 nodes, a burst of a tenth, 100 per 60 s', 80, 3),
  'bucket: lost answers': goal('B16', 'a tenth of the exchanges lost, x2, 1000 per 10 s', 10),
  'bucket: lost answers in a flood': goal('B16', 'a tenth of the replies lost, x100, 1000 per 10 s', 10, 3),
  'bucket: lost data': neverTooMuch('data lost', 'data lost at another moment'),
  'bucket: a flood that waits': goal('B20', 'a flood of 600, 12 nodes, 1 ms', 4),
  'bucket, early drop: far away': goal('B18', 'x2, a round trip of 250 ms, 1000 per 10 s', 8),
} as const

export type CheckName = keyof typeof checks
