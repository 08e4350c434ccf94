import type { Store } from '@weir/core'
import type { TestRunner } from '../store-contract/store-contract.ts'
import { algorithmCases } from './algorithms.ts'
import { answerCases } from './answers.ts'
import { callbackCases } from './callbacks.ts'
import { centralCases } from './central.ts'
import { type AdapterCase, AdapterContext, type AdapterUnderTest, type Need } from './context.ts'
import { delayingCases } from './delaying.ts'
import { handlerCases } from './handlers.ts'
import { holdingCases } from './holding.ts'
import { inFlightCases } from './in-flight.ts'
import { keyCases } from './keys.ts'
import { limitCases } from './limits.ts'
import { ownLimitCases } from './own-limits.ts'
import { peekCases } from './peeking.ts'
import { refundCases } from './refunds.ts'
import { reservingCases } from './reserving.ts'
import { robustnessCases } from './robustness.ts'
import { runTimeCases } from './run-time.ts'
import { timeCases } from './time.ts'

/** Milliseconds that a case may take. With a store a few cases wait for real intervals to end. */
const LONGEST = 30_000

/** Options of `adapterContract` beside the adapter. */
export interface AdapterContractOptions extends TestRunner {
  /**
   * Makes the store of each case. With a store the cases use the clock of the process.
   *
   * @default none: the cases move a clock of their own
   */
  readonly store?: () => Store | Promise<Store>
  /**
   * Skips these cases, by their titles, and gives the reason of each. Throws for a title that no case has.
   *
   * @default none
   */
  readonly without?: Readonly<Record<string, string>>
}

/**
 * The test suite of an adapter: the behaviour that the middleware of every framework must have. Each case starts its own
 * application and sends requests over a real socket.
 *
 * @example
 * ```ts
 * import { describe, test } from 'vitest'
 *
 * adapterContract('Express 5', expressAdapter(express), { describe, test })
 * ```
 *
 * @param name - the framework and its version, for the titles of the tests
 * @param adapter - how to build an application with the adapter in it
 */
export function adapterContract<Req>(
  name: string,
  adapter: AdapterUnderTest<Req>,
  { describe, test, store, without = {} }: AdapterContractOptions,
): void {
  const cases: readonly AdapterCase[] = [
    ...limitCases,
    ...ownLimitCases,
    ...algorithmCases,
    ...timeCases,
    ...centralCases,
    ...holdingCases,
    ...delayingCases,
    ...inFlightCases,
    ...handlerCases,
    ...peekCases,
    ...keyCases,
    ...answerCases,
    ...refundCases,
    ...reservingCases,
    ...runTimeCases,
    ...robustnessCases,
    ...callbackCases,
  ]
  const unknown = Object.keys(without).filter((title) => !cases.some((one) => one.title === title))
  if (unknown.length > 0) throw new Error(`The adapter contract has no case "${unknown.join('", "')}".`)
  const lacks: Readonly<Record<Need, boolean>> = {
    store: store === undefined,
    clock: store !== undefined,
    paths: adapter.routes === 'pattern',
    patterns: adapter.routes === 'path',
    handlerEnd: !adapter.handlerEnd,
    http2: !adapter.http2,
    proxies: adapter.proxies !== true,
    ownLimits: adapter.ownLimits !== true,
  }
  describe(`${name} keeps the adapter contract`, () => {
    for (const { title, needs, run } of cases) {
      if (without[title] !== undefined) continue
      if (needs?.split(', ').some((need) => lacks[need as Need])) continue
      const runCase = async () => {
        const context = new AdapterContext(adapter as AdapterUnderTest<unknown>, await store?.())
        try {
          await run(context)
        } finally {
          await context.close()
        }
      }
      test(title, runCase, LONGEST)
    }
  })
}
