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
  /** By the policy's name: only rules of one name are compared, so a claim costs the same however many others there are. */
  readonly #claims = new Map<string, readonly Claim[]>()
  /** The names that each throttler has claimed. */
  readonly #claimed = new WeakMap<object, ReadonlySet<string>>()
  /** The policies' ids that several throttlers count by. */
  readonly #shared = new Set<string>()
  #sweepAt = MOST

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
    const place = this.#placeOf(owner) ?? placeOfCall()
    const ref = new WeakRef(owner)
    const mine: Claim[] = []
    for (const [i, policy] of policies.entries()) {
      if (policy.coordination === 'local') continue
      const claim: Claim = { policy, rule: rules[i] as PolicyOptions<never>, owner: ref, place }
      for (const other of this.#othersNamed(policy.name, owner)) if (!bothFollow(other, claim)) checkSame(other, claim)
      mine.push(claim)
    }
    this.release(owner)
    for (const claim of mine) this.#set(claim.policy.name, [...this.#othersNamed(claim.policy.name), claim])
    this.#claimed.set(owner, new Set(mine.map(({ policy }) => policy.name)))
    if (this.#claims.size > this.#sweepAt) this.#sweep()
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
    for (const name of this.#claimed.get(owner) ?? []) this.#set(name, this.#othersNamed(name, owner))
    this.#claimed.delete(owner)
  }

  /** Where a throttler was made that has rules here. */
  #placeOf(owner: Claimant): string | undefined {
    for (const name of this.#claimed.get(owner) ?? []) {
      const own = this.#claims.get(name)?.find((claim) => claim.owner.deref() === owner)
      if (own !== undefined) return own.place
    }
    return undefined
  }

  /** The rules of a name that throttlers still have, without those of one of them. */
  #othersNamed(name: string, than?: object): readonly Claim[] {
    const claims = this.#claims.get(name) ?? []
    return claims.filter(({ owner }) => {
      const whose = owner.deref()
      return whose !== undefined && whose !== than
    })
  }

  #set(name: string, claims: readonly Claim[]): void {
    for (const { policy } of this.#claims.get(name) ?? []) this.#shared.delete(policy.id)
    if (claims.length === 0) this.#claims.delete(name)
    else this.#claims.set(name, claims)
    const ids = new Set<string>()
    for (const { policy } of claims) {
      if (ids.has(policy.id)) this.#shared.add(policy.id)
      ids.add(policy.id)
    }
  }

  /** Forgets the rules of throttlers that were dropped without being closed. */
  #sweep(): void {
    for (const name of [...this.#claims.keys()]) this.#set(name, this.#othersNamed(name))
    this.#sweepAt = Math.max(MOST, 2 * this.#claims.size)
  }
}

/** More names than this are looked through for those that nobody has any more; again when twice as many are left. */
const MOST = 1_000

/** Of stores that are the same by their value, and by where they are. */
const byValue = new WeakMap<MeetingPoint, Names>()
/** Held by the throttlers at the address, so that a process that opens stores at ever new addresses forgets the old ones. */
const byAddress = new Map<string, WeakRef<Names>>()
const gone = new FinalizationRegistry<string>((id) => {
  if (byAddress.get(id)?.deref() === undefined) byAddress.delete(id)
})

/** The rules at a store: those of all values that say they are at the same address. */
export function namesAt(store: MeetingPoint): Names {
  const { kind, address } = store
  const id = typeof address === 'string' ? `${kind} ${address}` : undefined
  let names = id === undefined ? byValue.get(store) : byAddress.get(id)?.deref()
  if (names !== undefined) return names
  names = new Names()
  if (id === undefined) byValue.set(store, names)
  else {
    byAddress.set(id, new WeakRef(names))
    gone.register(names, id)
  }
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
  const [ours, theirs] = [one, two].map(({ policy }) => show(policy.algorithm.settings?.(policy.limit) ?? {}))
  if (ours !== theirs && one.policy.limit === two.policy.limit) return `options of "algorithm" are ${ours} and ${theirs}`
  if (one.policy.coordination !== two.policy.coordination) return of('"coordination"', one.policy.coordination, two.policy.coordination)
  if (one.policy.limit !== two.policy.limit) return of('"limit"', one.policy.limit, two.policy.limit)
  if (!alike(one.rule.limit, two.rule.limit)) return of('"limit"', one.rule.limit, two.rule.limit)
  if (!alike(one.rule.key, two.rule.key)) return of('"key"', one.rule.key, two.rule.key)
  if (!alike(one.rule.match, two.rule.match)) return of('"match"', one.rule.match, two.rule.match)
  return undefined
}
