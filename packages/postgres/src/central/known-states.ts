import { isState } from '@weir/core/sync'
import { asArray, asNumber, asWhole, replyError } from '../reply/check.ts'

/** The most keys that are remembered. */
const MOST_KEYS = 10_000
/** The most numbers of one state. The largest limit of a log needs this many. */
const MOST_NUMBERS = 1_000_000
/** The most lanes of a process. */
const MOST_LANES = 64

/** The state of a key that this process last wrote or received. Another process may have changed it since. */
export interface KnownState {
  /** 0 for an unknown key, which is first treated as new. */
  readonly version: number
  readonly state: readonly number[]
  /** The numbers of this process's last requests that changed the key, by lane. */
  readonly sequences: readonly number[]
}

const NEW: KnownState = Object.freeze({ version: 0, state: Object.freeze([]), sequences: Object.freeze([]) })

/** The states of the latest keys that this process wrote or received. */
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

/** Reads [whether it was as known, version, numbers, sequences]. JSON contains infinity as a text. */
export function stateOf(value: unknown): { readonly same: boolean; readonly known: KnownState } {
  const [same, version, numbers, lanes] = asArray(value)
  const written = asArray(numbers)
  const sequences = asArray(lanes)
  if (typeof same !== 'boolean' || written.length > MOST_NUMBERS || sequences.length > MOST_LANES) throw replyError('a state')
  const state = written.map(asStateNumber)
  if (!isState(state)) throw replyError('a state')
  return { same, known: { version: asWhole(version), state, sequences: sequences.map(asWhole) } }
}

function asStateNumber(value: unknown): number {
  if (value === 'Infinity') return Number.POSITIVE_INFINITY
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY
  return asNumber(value)
}
