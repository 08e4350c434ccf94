import { WeirError } from '../report/errors.ts'
import { type Clock, keptAlive } from '../time/clock.ts'
import { Retried } from '../time/retried.ts'
import type { Usage, UsageOptions, UsageParts } from './usage.ts'

/** Loaded when somebody asks: few applications do. */
let code: typeof import('./usage.ts') | undefined

/** How long `usage` waits for its code at most, in milliseconds. */
const PATIENCE = 1_000

/** As the throttler's `usage`, whose code is loaded at its first call. */
export class LaterUsage {
  readonly #parts: UsageParts
  readonly #clock: Clock
  readonly #code: Retried<typeof import('./usage.ts')>

  constructor(parts: UsageParts, clock: Clock) {
    this.#parts = parts
    this.#clock = clock
    this.#code = new Retried(async () => (code = await import('./usage.ts')), clock)
  }

  ask(key: string, options: UsageOptions): Promise<readonly Usage[]> {
    const told =
      code?.usage(key, options, this.#parts) ??
      this.#code.within(PATIENCE).then((loaded) => {
        if (loaded !== undefined) return loaded.usage(key, options, this.#parts)
        throw new WeirError(
          'WEIR_NOT_LOADED',
          'The code of usage() could not be loaded yet. Try again later, and check that the files of the package are readable.',
        )
      })
    return keptAlive(this.#clock, told)
  }
}
