import { type Growth, Offences } from '../keys/offences.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { invalidOption } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'

/** Options of `escalating`. */
export interface EscalatingOptions {
  /** Sets how long the first block lasts: at least 1 ms. */
  readonly base: Duration
  /**
   * Makes each further block longer: more than 1, at most 100.
   *
   * @default 2
   */
  readonly factor?: number
  /** Limits how long a block lasts: at least `base`. */
  readonly max: Duration
  /**
   * Sets how long after its end a block still counts as an earlier one: at least 1 ms.
   *
   * @default as `max`
   */
  readonly memory?: Duration
}

/** A cooldown that grows, made by `escalating()`. */
export interface EscalatingCooldown {
  /** The first block, in milliseconds. */
  readonly first: number
  /** The growth of further blocks. */
  readonly growth: Growth
}

/**
 * A cooldown that grows with each new block of a key: `base`, then `base · factor`, and so on up to `max`.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * throttle({ key: 'ip', limit: 100, interval: '1m', cooldown: escalating({ base: '1m', max: '1h' }) })
 */
export function escalating(options: EscalatingOptions): EscalatingCooldown {
  checkOptions('escalating', options, ['base', 'factor', 'max', 'memory'], 'options such as { base: "1m", max: "1h" }', 'escalating.')
  const { factor = 2 } = options
  const first = parseDuration(options.base, 'escalating.base', 1)
  if (typeof factor !== 'number' || !(factor > 1 && factor <= 100)) {
    throw invalidOption('escalating.factor', factor, 'a number greater than 1 and at most 100')
  }
  const max = parseDuration(options.max, 'escalating.max', first)
  const memory = options.memory === undefined ? max : parseDuration(options.memory, 'escalating.memory', 1)
  return Object.freeze({ first, growth: Object.freeze(new RememberedGrowth(factor, max, memory)) })
}

/** The method is not an own property, because a message to another process must contain only the numbers. */
class RememberedGrowth implements Growth {
  readonly factor: number
  readonly max: number
  readonly memory: number

  constructor(factor: number, max: number, memory: number) {
    this.factor = factor
    this.max = max
    this.memory = memory
  }

  remember(): Offences {
    return new Offences()
  }
}
