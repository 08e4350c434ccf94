import { type Clock, WeirError } from '@weir/core'

/** The most names that are reported within `FORGET_AFTER`, so that foreign values can't fill memory or logs. */
const MOST_NAMES = 100
/** Milliseconds after which a name is reported again. */
const FORGET_AFTER = 3_600_000
const LONGEST_NAME = 200

/** Values in Redis that can't be read. Each is reported once. The scripts have dropped them, and processes send theirs again. */
export class Unreadable {
  readonly #clock: Clock
  readonly #warn: (error: WeirError) => void
  readonly #told = new Set<string>()
  #since = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, warn: (error: WeirError) => void) {
    this.#clock = clock
    this.#warn = warn
  }

  /** @param names - a list of texts, if a script of this layout sent it */
  report(names: unknown): void {
    if (!Array.isArray(names) || names.length === 0) return
    const now = this.#clock.monotonic()
    if (now - this.#since >= FORGET_AFTER) {
      this.#told.clear()
      this.#since = now
    }
    for (const name of names.slice(0, MOST_NAMES)) {
      if (this.#told.size >= MOST_NAMES) return
      const shown = typeof name === 'string' ? clean(name) : ''
      if (shown === '' || this.#told.has(shown)) continue
      this.#told.add(shown)
      const rest = this.#told.size === MOST_NAMES ? ' Weir reports no more of them within the hour.' : ''
      this.#warn(
        new WeirError(
          'WEIR_WARN_STORE_VALUE',
          `Ignored a value in Redis that Weir can't read: ${shown}. Processes write theirs again. Does another program write to these keys?${rest}`,
        ),
      )
    }
  }
}

/** Returns the name on one line, without control characters, and of bounded length. */
function clean(name: string): string {
  const shown = name.slice(0, LONGEST_NAME + 1).replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, ' ')
  return shown.length > LONGEST_NAME ? `${shown.slice(0, LONGEST_NAME - 1)}…` : shown
}
