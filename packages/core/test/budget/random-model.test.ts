import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import type { Receipt } from '../../src/budget/receipt.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'

// Buckets drain, so that a plain sum is no model of them. Their own counts are compared in every-cell.test.ts.
const CELLS = EACH_CELL.filter(({ algorithm }) => {
  return algorithm.slots === undefined && !algorithm.name.includes('Bucket')
})

const units = fc.integer({ min: 1, max: 60 })
const who = fc.integer({ min: 0, max: 1 })
const which = fc.integer({ min: 0, max: 20 })
const action = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('reserve' as const), node: who, units, short: fc.boolean(), refund: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('settle' as const), of: which, units: fc.option(fc.integer({ min: 0, max: 90 })) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('used' as const), of: which, units: fc.integer({ min: 0, max: 90 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), of: which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const), time: fc.integer({ min: 0, max: 20_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reset' as const), node: who }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('update' as const), limit: fc.integer({ min: 5_000, max: 6_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('outage' as const), of: which, units: fc.integer({ min: 0, max: 90 }) }) },
)

/** A reservation of the model. */
interface Open {
  readonly receipt: Receipt
  readonly node: Node
  readonly reserved: number
  readonly endsAt: number
  readonly refund: boolean
  /** Units that count for it now. Undefined after the store has lost it. */
  counted: number | undefined
  /** Whether a reset has returned its units. */
  reset: boolean
  used: number | undefined
  open: boolean
}

const TTL = 30_000

for (const cell of CELLS) {
  const { name, coordination } = cell
  test(`${name}, ${coordination}: whatever happens, exactly the settled units count`, { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 40 }), async (actions) => {
        const it = scene()
        const policy = (limit: number) => ({ name: 'tokens', limit, interval: '6h', algorithm: cell.algorithm, coordination }) as never
        const alone = coordination === 'local'
        // The interval begins with the world.
        let nodes = (alone ? [0] : [0, 1]).map(() => it.node(policy(5_000), { alone })) as [Node, Node?]
        for (const node of nodes) node?.start()
        await vi.dynamicImportSettled()
        await it.world.run(2_500)
        const all: Open[] = []
        let sum = 0
        const at = (index: number): Open | undefined => all[index % Math.max(1, all.length)]

        function end(one: Open, counted: number): void {
          one.open = false
          // After a reset only the units above the reserved ones are still to be counted.
          if (one.reset) sum += Math.max(0, counted - one.reserved)
          else if (one.counted !== undefined) sum += counted - one.counted
        }
        function expire(): void {
          for (const one of all) {
            if (one.open && it.world.time >= one.endsAt) end(one, one.used ?? (one.refund ? 0 : one.reserved))
          }
        }

        for (const step of actions) {
          if (step.do === 'reserve') {
            const node = nodes[step.node] ?? nodes[0]
            const ttl = step.short ? TTL : '6h'
            const expire = step.refund ? 'refund' : 'charge'
            const receipt = await waited(it, node.reserveAsync('k', { cost: { tokens: step.units }, ttl, expire }))
            if (!receipt.allowed) continue
            const endsAt = step.short ? it.world.time + TTL : Number.POSITIVE_INFINITY
            const { units: reserved, refund } = step
            all.push({ receipt, node, reserved, endsAt, refund, counted: reserved, reset: false, used: undefined, open: true })
            sum += reserved
          } else if (step.do === 'settle') {
            const one = at(step.of)
            one?.receipt.settle(step.units === null ? undefined : { tokens: step.units })
            if (one?.open === true) end(one, step.units ?? one.used ?? one.reserved)
          } else if (step.do === 'used') {
            const one = at(step.of)
            one?.receipt.used({ tokens: step.units })
            if (one?.open === true) one.used = Math.max(one.used ?? 0, step.units)
          } else if (step.do === 'cancel') {
            const one = at(step.of)
            one?.receipt.cancel()
            if (one?.open === true) end(one, 0)
          } else if (step.do === 'update') for (const node of nodes) node?.update([policy(step.limit)])
          else if (step.do === 'reset' && (coordination !== 'leased' || nodes[1] !== undefined)) {
            // Leased units that a closed process used are cleared with the next request of the key only.
            const node = nodes[step.node] ?? nodes[0]
            node.reset('k')
            sum = 0
            for (const one of all) one.reset = true
            await it.world.run(2_500)
          } else if (step.do === 'close' && nodes[1] !== undefined) {
            const [left, closed] = nodes
            await it.close(closed)
            for (const one of all) if (one.node === closed && one.open) end(one, one.used ?? (one.refund ? 0 : one.reserved))
            nodes = [left]
            await it.world.run(2_500)
          } else if (step.do === 'lose' && !alone && (coordination === 'central' || nodes[1] !== undefined)) {
            // The counts of a process that was closed are lost with the data.
            // Unsent counts may be lost with the data only if the store is the only one to have the others.
            await it.world.run(2_500)
            expire()
            it.store.hub.lose()
            if (coordination === 'central') {
              sum = 0
              for (const one of all) one.counted = undefined
            }
            await it.world.run(8_000)
          } else if (step.do === 'outage') {
            await it.world.run(1_500)
            it.store.health = 'rejecting'
            await it.world.run(1_000)
            expire()
            const one = at(step.of)
            one?.receipt.settle({ tokens: step.units })
            if (one?.open === true) end(one, step.units)
            await it.world.run(2_000)
            it.store.health = 'up'
            await it.world.run(5_000)
          } else if (step.do === 'pass') await it.world.run(step.time)
          // The last moments before an end are not compared.
          if (all.some((one) => one.open && Math.abs(one.endsAt - it.world.time) < 50)) await it.world.run(100)
          expire()
        }
        await it.world.run(8_000)
        expire()
        for (const node of nodes) {
          const [usage] = await waited(it, (node as Node).usage('k', { timeout: '1s' }))
          expect(usage?.used).toBe(sum)
        }
        expect(nodes.every((node) => node?.explain('k').every(({ remaining }) => remaining >= 0))).toBe(true)
        await it.close()
      }),
      { numRuns: 60 },
    )
  })
}

/** The value of a promise that needs time to pass. */
async function waited<T>(it: Scene, promise: Promise<T>): Promise<T> {
  let done = false
  const ended = promise.finally(() => {
    done = true
  })
  for (let waited = 0; !done && waited < 2_000; waited++) await it.world.run(1)
  return await ended
}
