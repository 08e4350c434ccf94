import type { RedisServer } from '@weir/tooling/redis-servers'
import type { Given, StartOptions, StoreKind, Target } from './given.ts'
import type { Random } from './random.ts'
import type { Victim } from './victim.ts'

/** The attacked process, as it sees itself. */
export interface Exposed {
  /** Where it listens on the loopback interface. */
  readonly port?: number
  /** Answers the attacker's questions. Both travel as JSON. */
  readonly answer?: (question: never) => unknown
}

/** The surroundings in which an attack runs. */
export interface Context<Args> {
  readonly target: Target
  readonly store: StoreKind
  /** Smaller, for CI. */
  readonly short: boolean
  readonly random: Random
  /** Milliseconds that a fuzz goes on for. */
  readonly time: number
  /** The Redis of this run, if it has one. */
  readonly redis: RedisServer
  readonly namespace: string
  /** Starts `victim` in a fresh process that knows nothing but the built packages; it ends with the run. */
  start(args: Args, options?: StartOptions): Promise<Victim>
  /** Notes one result. `figure` says in a few words what happened. */
  result(tried: string, held: boolean, figure?: string): void
}

/**
 * One way to do harm. `run` attacks from this process, over sockets and signals only; `victim` runs in the attacked one, and
 * imports the packages by their published names, when it is called: nothing of them is loaded here.
 */
export interface Attack<Args = never> {
  readonly name: string
  readonly targets: readonly Target[]
  /** Default: without a store. */
  readonly stores?: readonly StoreKind[]
  /** Whether it measures, and so is run while nothing else is. */
  readonly alone?: true
  /** Targets and stores of the short form, where these are fewer. */
  readonly short?: { readonly targets?: readonly Target[]; readonly stores?: readonly StoreKind[] }
  victim(given: Given<Args>): Promise<Exposed>
  run(context: Context<Args>): Promise<void>
}

/** Keeps the type of what `start` is called with. */
export function attack<Args>(made: Attack<Args>): Attack {
  return made as unknown as Attack
}
