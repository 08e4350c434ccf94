import { systemClock } from '@weir/core'
import { auditCases } from './audit.ts'
import { blockCases } from './blocks.ts'
import { bucketCases } from './buckets.ts'
import type { ContractCase } from './case.ts'
import { ContractContext } from './context.ts'
import { countCases } from './counts.ts'
import { decisionCases } from './decisions.ts'
import type { StoreContractFixture } from './fixture.ts'
import { leaseCases } from './leases.ts'
import { nodeCases } from './nodes.ts'
import { reservationCases } from './reservations.ts'
import { resetCases } from './resets.ts'
import { windowCases } from './windows.ts'

/** The functions of a test runner that the contracts need. Vitest, node:test, Jest and others have them. */
export interface TestRunner {
  describe(name: string, define: () => void): unknown
  /** Defines a test. `timeout` is in milliseconds, for runners that support one. */
  test(name: string, run: () => Promise<void>, timeout?: number): unknown
}

/** The parts of the contract, in the order in which to build a store. */
const TIERS: Readonly<Record<string, readonly ContractCase[]>> = {
  'fixed windows': [...countCases, ...blockCases, ...nodeCases],
  resets: resetCases,
  'sliding windows': windowCases,
  buckets: bucketCases,
  leases: leaseCases,
  decisions: decisionCases,
  reservations: reservationCases,
  'audit log': auditCases,
}

/** The test runner, and the cases that a store can't support. */
export interface StoreContractOptions extends TestRunner {
  /**
   * Skips the cases that need an ability which the fixture lacks, and gives the reason.
   *
   * @default none
   */
  readonly without?: {
    readonly [need in NonNullable<ContractCase['needs']>[number]]?: string
  }
}

/**
 * The test suite of the `Store` interface, in tiers: fixed windows, resets, sliding windows, buckets, leases, decisions, reservations, audit
 * log. Build a store in this order. Each case gets its own store.
 *
 * @example
 * ```ts
 * import { describe, test } from 'vitest'
 *
 * storeContract('my store', async () => {
 *   const store = await startMyStore()
 *   return { connect: (node) => store.open(node), close: () => store.stop() }
 * }, { describe, test, without: { lose: 'keeps its data on disk', goAway: 'has no network', leftovers: 'can not be listed' } })
 * ```
 *
 * @param name - the name of the store, for the titles of the tests
 * @param factory - makes a store that shares nothing with earlier ones
 */
export function storeContract(
  name: string,
  factory: () => StoreContractFixture | Promise<StoreContractFixture>,
  { describe, test, without = {} }: StoreContractOptions,
): void {
  const define = ({ title, run }: ContractCase): void => {
    test(title, async () => {
      const fixture = await factory()
      const context = new ContractContext(fixture, fixture.clock ?? systemClock)
      try {
        await run(context)
      } finally {
        await context.close()
        await fixture.close()
      }
    })
  }
  describe(`${name} keeps the store contract`, () => {
    for (const [tier, all] of Object.entries(TIERS)) {
      const cases = all.filter(({ needs }) => needs?.some((need) => without[need] !== undefined) !== true)
      if (cases.length > 0) describe(tier, () => cases.forEach(define))
    }
  })
}
