import { alike } from '../decide/alike.ts'
import type { Limits } from '../decide/asking.ts'
import type { Decision } from '../decide/decision.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import { show, WeirError } from '../report/errors.ts'
import type { MeetingPoint } from '../store/contract.ts'
import { type CountedThrottler, decideUncounted } from './counted.ts'
import type { Holding } from './delays.ts'

/** Whose rules they are. */
interface Claimant {
  /** There while it follows rules of a source. */
  readonly followed?: unknown
}

/** A rule under its name, as far as throttlers of one process must agree on it. */
interface Claim {
  readonly policy: Policy
  readonly rule: PolicyOptions<never>
  /** Whose it is; gone when nobody holds that any more. */
  readonly owner: WeakRef<Claimant>
  /** Where the throttler was made. */
  readonly place: string
}

/** The rules of all throttlers of this process that count at one store. */
export class Names {
  #claims: readonly Claim[] = []
  /** The policies' ids that several throttlers count by. */
  #shared: ReadonlySet<string> = new Set()

  /** Whether several throttlers count by this policy, each as a node of its own. */
  shares(id: string): boolean {
    return this.#shared.size > 0 && this.#shared.has(id)
  }

  /** Whether there is such a policy. */
  get sharing(): boolean {
    return this.#shared.size > 0
  }

  /**
   * Takes a throttler's rules over, in place of those that it had before.
   *
   * @throws WeirError `WEIR_DUPLICATE_POLICY` when another throttler has another rule under one of the names; then nothing
   * has changed
   */
  claim(owner: Claimant, rules: readonly PolicyOptions<never>[], policies: readonly Policy[]): void {
    const others = this.#othersThan(owner)
    const place = this.#claims.find((claim) => claim.owner.deref() === owner)?.place ?? placeOfCall()
    const ref = new WeakRef(owner)
    const mine: Claim[] = []
    for (const [i, policy] of policies.entries()) {
      if (policy.coordination === 'local') continue
      const claim: Claim = { policy, rule: rules[i] as PolicyOptions<never>, owner: ref, place }
      for (const other of others) if (other.policy.name === policy.name && !bothFollow(other, claim)) checkSame(other, claim)
      mine.push(claim)
    }
    this.#keep([...others, ...mine])
  }

  /** As `decideAsync` of the throttler, where others have some of its rules: what one of them has counted already counts no more. */
  decide<Name extends string>(
    throttler: CountedThrottler<Name>,
    request: object,
    keys: readonly (string | undefined)[],
    costs: readonly number[],
    places: readonly number[],
    limits?: Limits,
    holding?: Holding | null,
  ): Decision<Name> | Promise<Decision<Name>> | undefined {
    return decideUncounted(this, throttler, request, keys, costs, places, limits, holding)
  }

  release(owner: object): void {
    this.#keep(this.#othersThan(owner))
  }

  #othersThan(owner: object): readonly Claim[] {
    return this.#claims.filter((claim) => {
      const whose = claim.owner.deref()
      return whose !== undefined && whose !== owner
    })
  }

  #keep(claims: readonly Claim[]): void {
    this.#claims = claims
    const ids = claims.map(({ policy }) => policy.id)
    this.#shared = new Set(ids.filter((id, at) => ids.indexOf(id) !== at))
  }
}

/** Of stores that are the same by their value, and by where they are. */
const byValue = new WeakMap<MeetingPoint, Names>()
const byAddress = new Map<string, Names>()

/** The rules at a store: those of all values that say they are at the same address. */
export function namesAt(store: MeetingPoint): Names {
  const { kind, address } = store
  const id = typeof address === 'string' ? `${kind} ${address}` : undefined
  let names = id === undefined ? byValue.get(store) : byAddress.get(id)
  if (names !== undefined) return names
  names = new Names()
  if (id === undefined) byValue.set(store, names)
  else byAddress.set(id, names)
  return names
}

/** Where a throttler is being made: the nearest caller that is not of Weir. */
function placeOfCall(): string {
  const frames = (new Error().stack ?? '').split('\n').slice(1)
  // Beside this package stand the adapters, in a checkout as well.
  const beside = /([^(\s]*[\\/])core[\\/](?:src|dist)[\\/]/.exec(frames[0] ?? '')?.[1]
  const isOurs = (frame: string) =>
    OURS.test(frame) || (beside !== undefined && frame.includes(beside) && /[\\/](?:src|dist)[\\/]/.test(frame))
  const place = frames
    .find((frame) => !isOurs(frame))
    ?.trim()
    .replace(/^at /, '')
  return place ?? 'an unknown place'
}

const OURS = /[\\/]@weir[\\/][\w-]+[\\/]dist[\\/]|^\s*at new |node:internal/

/** A change of rules that several follow comes to one after the other. */
function bothFollow(one: Claim, two: Claim): boolean {
  return [one, two].every(({ owner }) => owner.deref()?.followed !== undefined)
}

function checkSame(one: Claim, two: Claim): void {
  const difference = differenceOf(one, two)
  if (difference === undefined) return
  throw new WeirError(
    'WEIR_DUPLICATE_POLICY',
    `Two throttlers with the same store have different rules named ${show(two.policy.name)}: ${difference}. One is made at ${one.place}, the other at ${two.place}. Give one of them another "name", or both the same rule.`,
  )
}

/** What tells two rules apart; undefined for nothing. */
function differenceOf(one: Claim, two: Claim): string | undefined {
  const of = (what: string, first: unknown, second: unknown): string => `${what} is ${show(first)} and ${show(second)}`
  const [first, second] = [one.policy, two.policy].map(({ interval, calendar }) => calendar?.id ?? interval)
  if (first !== second) return of('"interval"', first, second)
  if (one.policy.algorithm.id !== two.policy.algorithm.id) return of('"algorithm"', one.policy.algorithm.id, two.policy.algorithm.id)
  if (one.policy.coordination !== two.policy.coordination) return of('"coordination"', one.policy.coordination, two.policy.coordination)
  if (one.policy.limit !== two.policy.limit) return of('"limit"', one.policy.limit, two.policy.limit)
  if (!alike(one.rule.limit, two.rule.limit)) return of('"limit"', one.rule.limit, two.rule.limit)
  if (!alike(one.rule.key, two.rule.key)) return of('"key"', one.rule.key, two.rule.key)
  if (!alike(one.rule.match, two.rule.match)) return of('"match"', one.rule.match, two.rule.match)
  return undefined
}
