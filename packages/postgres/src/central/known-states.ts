import { asArray, asNumber, asWhole, replyError } from '../reply/check.ts'

/** Keys that are remembered. */
const MOST_KEYS = 10_000
/** Numbers of one state: a log of the largest limit that can be kept of single requests. */
const MOST_NUMBERS = 1_000_000

/** What a node knows of a key: what it wrote last, or was told. Somebody else may have changed it since. */
export interface KnownState {
  /** 0 for a key that was never heard of: then it is taken for new. */
  readonly version: number
  readonly state: readonly number[]
  /** The number of this node's last request that changed it. */
  readonly sequence: number
}

const NEW: KnownState = Object.freeze({ version: 0, state: Object.freeze([]), sequence: 0 })

/** The states of keys as far as this node has heard of them, the latest ones. */
export class KnownStates {
  readonly #byKey = new Map<string, KnownState>()

  of(key: string): KnownState {
    return this.#byKey.get(key) ?? NEW
  }

  learn(key: string, known: KnownState): void {
    this.#byKey.delete(key)
    this.#byKey.set(key, known)
    if (this.#byKey.size > MOST_KEYS) this.#byKey.delete(this.#byKey.keys().next().value as string)
  }
}

/** [whether it was as known, version, numbers, sequence]. Infinity comes as a text. */
export function stateOf(value: unknown): { readonly same: boolean; readonly known: KnownState } {
  const [same, version, numbers, sequence] = asArray(value)
  const state = asArray(numbers)
  if (typeof same !== 'boolean' || state.length > MOST_NUMBERS) throw replyError('a state')
  return { same, known: { version: asWhole(version), state: state.map(asStateNumber), sequence: asWhole(sequence) } }
}

function asStateNumber(value: unknown): number {
  if (value === 'Infinity') return Number.POSITIVE_INFINITY
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY
  return asNumber(value)
}
