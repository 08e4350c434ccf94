import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { Receipt } from '../../src/budget/receipt.ts'
import { fixedWindow, type ReserveOptions } from '../../src/index.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'

// Reservations that last longer than their interval. Those within one are in random-model.test.ts.

const INTERVAL = 60_000
const CELLS = EACH_CELL.filter(({ algorithm }) => algorithm.name === fixedWindow().name)

const which = fc.nat(20)
const units = fc.integer({ min: 0, max: 90 })
const action = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      node: fc.nat(1),
      units: fc.integer({ min: 1, max: 60 }),
      ttl: fc.constantFrom(7_000, 25_000, 90_000, 200_000),
      refund: fc.boolean(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('settle' as const), of: which, units: fc.option(units, { nil: undefined }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('used' as const), of: which, units }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), of: which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('refund' as const), of: which, units: fc.integer({ min: 1, max: 70 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pass' as const), time: fc.integer({ min: 0, max: 40_000 }) }) },
)

/** A reservation of the model. */
interface Open {
  readonly receipt: Receipt
  readonly node: Node
  readonly interval: number
  readonly endsAt: number
  readonly refund: boolean
  /** Without refunded units. */
  reserved: number
  used: number | undefined
  open: boolean
}

async function reserved(it: Scene, node: Node, options: ReserveOptions): Promise<Receipt> {
  let receipt: Receipt | undefined
  const done = node.reserveAsync('k', options).then((one) => {
    receipt = one
  })
  for (let waited = 0; receipt === undefined && waited < 300; waited++) await it.world.run(1)
  await done
  return receipt as unknown as Receipt
}

/** Leaves the ends of intervals, where it depends on milliseconds which interval counts. */
async function leaveEdge({ world }: Scene, before: number): Promise<void> {
  const since = world.time % INTERVAL
  if (since > INTERVAL - before) await world.run(INTERVAL - since + 1_500)
  else if (since < 1_500) await world.run(1_500)
}

test.each(CELLS)('$coordination: unused units return to their own interval only, and more use counts when it is known', async (cell) => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 8, maxLength: 40 }), async (actions) => {
      const it = scene()
      const { coordination, algorithm } = cell
      const alone = coordination === 'local'
      const policy = { name: 'tokens', limit: 5_000, interval: INTERVAL, algorithm, coordination } as never
      const nodes = (alone ? [0] : [0, 1]).map(() => it.node(policy, { alone })) as [Node, Node?]
      for (const node of nodes) node?.start()
      await vi.dynamicImportSettled()
      await it.world.run(2_500)
      const sums = new Map<number, number>()
      const intervalAt = (time: number) => Math.floor(time / INTERVAL)
      const add = (interval: number, more: number) => sums.set(interval, (sums.get(interval) ?? 0) + more)
      const all: Open[] = []
      function end(one: Open, used: number, time: number): void {
        one.open = false
        const more = used - one.reserved
        // Whatever is known after all units were refunded changes nothing.
        if (one.reserved > 0 && (more > 0 || intervalAt(time) === one.interval)) add(intervalAt(time), more)
      }
      function expire(): void {
        for (const one of all) {
          if (one.open && it.world.time >= one.endsAt) end(one, one.used ?? (one.refund ? 0 : one.reserved), one.endsAt)
        }
      }
      for (const step of actions) {
        await leaveEdge(it, 3_000)
        expire()
        if (step.do === 'pass') await it.world.run(step.time)
        else if (step.do === 'reserve') {
          const node = nodes[step.node] ?? nodes[0]
          const { units: tokens, ttl, refund } = step
          const receipt = await reserved(it, node, { cost: { tokens }, ttl, expire: refund ? 'refund' : 'charge' })
          if (!receipt.allowed) continue
          const { time } = it.world
          const interval = intervalAt(time)
          all.push({ receipt, node, interval, endsAt: time + ttl, refund, reserved: tokens, used: undefined, open: true })
          add(interval, tokens)
          await it.world.run(5)
        } else {
          const one = all[step.of % Math.max(1, all.length)]
          if (one === undefined) continue
          const { time } = it.world
          if (step.do === 'settle') {
            one.receipt.settle(step.units === undefined ? undefined : { tokens: step.units })
            if (one.open) end(one, step.units ?? one.used ?? one.reserved, time)
          } else if (step.do === 'cancel') {
            one.receipt.cancel()
            if (one.open) end(one, 0, time)
          } else if (step.do === 'used') {
            one.receipt.used({ tokens: step.units })
            if (one.open) one.used = Math.max(one.used ?? 0, step.units)
          } else if (one.open) {
            one.node.refund(one.receipt, step.units)
            const back = Math.min(step.units, one.reserved)
            one.reserved -= back
            if (intervalAt(time) === one.interval) add(one.interval, -back)
          }
          await it.world.run(20)
        }
      }
      await leaveEdge(it, 6_000)
      await it.world.run(1_500)
      expire()
      const usage = nodes[0].usage('k')
      await it.world.run(100)
      expect((await usage)[0]?.used).toBe(sums.get(intervalAt(it.world.time)) ?? 0)
      await it.close()
    }),
    { numRuns: 40 },
  )
})
