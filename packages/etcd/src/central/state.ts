import { isState } from '@weir/core/sync'

/** The state of one key of a policy. */
export interface DecidedState {
  readonly numbers: number[]
  /** The last request of each lane of a process that changed the key, the latest last. */
  readonly sequences: Map<string, number>
  /** The time at which the state equals a new one, by the server's clock. */
  readonly until: number
}

/** The most lanes of a key. If there are more, the lanes that changed the key longest ago are forgotten. */
const MOST_LANES = 256
/** The most numbers of a key. A log has two for each request, and each of at most 1,000 open reservations has five. */
const MOST_NUMBERS = 50_000

export function newState(): DecidedState {
  return { numbers: [], sequences: new Map(), until: 0 }
}

export function textOf({ numbers, sequences, until }: DecidedState): string {
  const kept = [...sequences].slice(-MOST_LANES)
  // JSON has no infinity.
  return JSON.stringify([until, numbers.map((number) => (Number.isFinite(number) ? number : String(number))), kept])
}

/** @returns undefined if the text can't be read */
export function readState(text: string): DecidedState | undefined {
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!Array.isArray(list) || list.length !== 3) return undefined
  const [until, written, nodes] = list as readonly unknown[]
  if (typeof until !== 'number' || !Number.isFinite(until) || !Array.isArray(written) || !Array.isArray(nodes)) return undefined
  if (written.length > MOST_NUMBERS || nodes.length > MOST_LANES) return undefined
  const numbers: number[] = []
  for (const one of written as readonly unknown[]) {
    const number = one === 'Infinity' || one === '-Infinity' ? Number(one) : one
    if (typeof number !== 'number' || (number === one && !Number.isFinite(number))) return undefined
    numbers.push(number)
  }
  if (!isState(numbers)) return undefined
  const sequences = new Map<string, number>()
  for (const pair of nodes as readonly unknown[]) {
    const [node, sequence] = Array.isArray(pair) ? (pair as readonly unknown[]) : []
    if (typeof node !== 'string' || typeof sequence !== 'number') return undefined
    sequences.set(node, sequence)
  }
  return { numbers, sequences, until }
}
