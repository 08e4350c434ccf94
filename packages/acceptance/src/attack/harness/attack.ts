import type { RedisServer } from '@weir/tooling/redis-servers'
import type { Given, StartOptions, StoreKind, Target } from './given.ts'
import type { Random } from './random.ts'
import type { Victim } from './victim.ts'

/** The parts of the attacked process that the attack may use. */
export interface Exposed {
  /** The port of the loopback interface on which it listens. */
  readonly port?: number
  /** Answers the attacker's questions. Questions and answers are sent as JSON. */
  readonly answer?: (question: never) => unknown
}

/** The surroundings in which an attack runs. */
export interface Context<Args> {
  readonly target: Target
  readonly store: StoreKind
  /** Whether the attack runs in its short form, for CI. */
  readonly short: boolean
  readonly random: Random
  /** The duration of a fuzz in milliseconds. */
  readonly time: number
  /** The Redis of this run, if it has one. */
  readonly redis: RedisServer
  readonly namespace: string
  /** Starts `victim` in a fresh process that has only the built packages. The process ends with the run. */
  start(args: Args, options?: StartOptions): Promise<Victim>
  /** Records one result. `held` is whether Weir withstood it, and `figure` describes the outcome in a few words. */
  result(tried: string, held: boolean, figure?: string): void
}

/**
 * One way to do harm. `run` attacks from this process, over sockets and signals only. `victim` runs in the attacked process, and imports
 * the packages by their published names when it is called, so this process loads none of them.
 */
export interface Attack<Args = never> {
  readonly name: string
  readonly targets: readonly Target[]
  /** The stores to attack with. Default: none. */
  readonly stores?: readonly StoreKind[]
  /** Whether it measures, and so must run alone. */
  readonly alone?: true
  /** Targets and stores of the short form, if it has fewer. */
  readonly short?: { readonly targets?: readonly Target[]; readonly stores?: readonly StoreKind[] }
  victim(given: Given<Args>): Promise<Exposed>
  run(context: Context<Args>): Promise<void>
}

/** Checks that `start` and `victim` use the same arguments, and then hides their type. */
export function attack<Args>(made: Attack<Args>): Attack {
  return made as unknown as Attack
}
