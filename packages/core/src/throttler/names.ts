import { alike, isData } from '../decide/alike.ts'
import { countsAtStore } from '../decide/coordination.ts'
import type { Policy, PolicyOptions } from '../decide/policy.ts'
import { show, WeirError } from '../report/errors.ts'
import { Once } from '../report/once.ts'
import type { MeetingPoint } from '../store/contract.ts'
import { isMadeAgain, type Place, placeOfCall } from './place.ts'

/** The owner of rules. */
export interface Claimant {
  /** Set while it follows rules of a source. */
  readonly followed?: unknown
  readonly nodeId?: string
  readonly emitter?: { has(event: 'warning'): boolean }
  warn?(error: WeirError, subject: string): void
  /** Replaces its own rules of the same names by these. */
  replace?(rules: readonly PolicyOptions<never>[]): void
  close?(): Promise<void>
}

/** A rule under its name, as far as throttlers of one process must agree on it. */
interface Claim {
  readonly policy: Policy
  readonly rule: PolicyOptions<never>
  /** The owner. A weak reference, so that a throttler dropped by the application is collected. */
  readonly owner: WeakRef<Claimant>
  /** The place where the throttler was created, or the update that brought the rule. */
  readonly place: Place
  /** Whether the rule is that of a later throttler, which the same source line has created. */
  readonly replaced: boolean
}

/** A rule, and the later rule that replaces it. */
interface Replacement {
  readonly earlier: Claim
  readonly later: Claim
}

/** The rules of all throttlers of this process that count in one store. */
export class Names {
  /** By the policy's name: only rules of one name are compared, so a claim costs the same however many others there are. */
  readonly #claims = new Map<string, readonly Claim[]>()
  /** The names that each throttler has claimed. */
  readonly #claimed = new WeakMap<object, ReadonlySet<string>>()
  /** The ids of policies with which several throttlers count. */
  readonly #shared = new Set<string>()
  readonly #said = new Once()
  /** The ids of throttlers that follow a later one of this process. */
  readonly #following = new Set<string>()
  #replacements: readonly Replacement[] = []
  #sweepAt = MOST

  /** Whether several throttlers count with this policy, each as a process of its own. */
  shares(id: string): boolean {
    return this.#shared.size > 0 && this.#shared.has(id)
  }

  /** Whether a process id has the rules of a later throttler of this process, even if the store still reports its former ones. */
  isFollowing(node: string): boolean {
    return this.#following.has(node)
  }

  /** Whether throttlers share any policy. */
  get sharing(): boolean {
    return this.#shared.size > 0
  }

  /**
   * Takes over a throttler's rules, in place of its former ones. Rules that the same source line has made before are replaced. The
   * throttlers that have them follow with `settle`.
   *
   * @throws WeirError `WEIR_DUPLICATE_POLICY` if another throttler has another rule under one of the names. Then nothing has changed
   */
  claim(owner: Claimant, rules: readonly PolicyOptions<never>[], policies: readonly Policy[]): void {
    const ref = new WeakRef(owner)
    const mine: Claim[] = []
    const replacements: Replacement[] = []
    let here: Place | undefined
    for (const [i, policy] of policies.entries()) {
      if (!countsAtStore(policy)) continue
      const known = this.#ownNamed(policy.name, owner)
      const place = known?.place ?? (here ??= placeOfCall())
      const later: Claim = { policy, rule: rules[i] as PolicyOptions<never>, owner: ref, place, replaced: known?.replaced ?? false }
      for (const earlier of this.#othersNamed(policy.name, owner)) {
        if (bothFollow(earlier, later)) continue
        const difference = differenceOf(earlier, later)
        if (difference === undefined) continue
        // A rule that a throttler had before can't come from a module that is evaluated again.
        if (known !== undefined || !takesOver(later, earlier)) throw duplicate(earlier, later, difference)
        // Rules of a source stay until the source has others.
        if (earlier.owner.deref()?.followed === undefined) replacements.push({ earlier, later })
      }
      mine.push(later)
    }
    this.release(owner)
    for (const claim of mine) this.#set(claim.policy.name, [...this.#othersNamed(claim.policy.name), claim])
    this.#claimed.set(owner, new Set(mine.map(({ policy }) => policy.name)))
    this.#replacements = replacements
    if (this.#claims.size > this.#sweepAt) this.#sweep()
  }

  /** Must be called once the rules of the last `claim` count: earlier throttlers then take over the rules that replace theirs. */
  settle(): void {
    const replacements = this.#replacements
    if (replacements.length === 0) return
    this.#replacements = []
    const rulesOf = new Map<Claimant, PolicyOptions<never>[]>()
    for (const { earlier, later } of replacements) {
      const { name } = later.policy
      const claims = this.#claims.get(name) ?? []
      const { policy, rule } = later
      this.#set(
        name,
        claims.map((claim) => (claim === earlier ? { ...claim, policy, rule, replaced: true } : claim)),
      )
      const owner = earlier.owner.deref()
      if (owner !== undefined) rulesOf.set(owner, [...(rulesOf.get(owner) ?? []), rule])
    }
    for (const [owner, rules] of rulesOf) {
      if (this.#following.size >= MOST) this.#following.clear()
      this.#following.add(owner.nodeId ?? '')
      replaceAt(owner, rules)
    }
    for (const replacement of replacements) this.#tell(replacement)
    for (const name of new Set(replacements.map(({ later }) => later.policy.name))) this.#endOldest(name)
  }

  #tell({ earlier, later }: Replacement): void {
    const { name } = later.policy
    if (!this.#said.first(`${name} ${later.place.text}`)) return
    const owners = [later, earlier].map(({ owner }) => owner.deref())
    const teller = owners.find((owner) => owner?.emitter?.has('warning')) ?? owners[0]
    const message = `Policy ${show(name)} is made again by ${later.place.text}: ${differenceOf(earlier, later)}. The new rule replaces the older one in all throttlers of this process. If this is no hot reload, give each policy a different "name": with NODE_ENV=production it is an error.`
    teller?.warn?.(new WeirError('WEIR_WARN_POLICY_REPLACED', message), name)
  }

  /** Ends the oldest throttlers whose rule of this name was replaced: a module may be evaluated any number of times. */
  #endOldest(name: string): void {
    const replaced = this.#othersNamed(name).filter((claim) => claim.replaced)
    for (const { owner } of replaced.slice(0, -MOST_REPLACED)) {
      // It has already reported the counts that it could not send.
      owner
        .deref()
        ?.close?.()
        .catch(() => {})
    }
  }

  release(owner: object): void {
    for (const name of this.#claimed.get(owner) ?? []) this.#set(name, this.#othersNamed(name, owner))
    this.#claimed.delete(owner)
  }

  /** The place where another throttler with a policy of this name was created, for messages. */
  placeOf(name: string, than: object): string | undefined {
    return this.#othersNamed(name, than)[0]?.place.text
  }

  #ownNamed(name: string, owner: Claimant): Claim | undefined {
    return this.#claims.get(name)?.find((claim) => claim.owner.deref() === owner)
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

  /** Removes the rules of throttlers that were dropped without being closed. */
  #sweep(): void {
    for (const name of [...this.#claims.keys()]) this.#set(name, this.#othersNamed(name))
    this.#sweepAt = Math.max(MOST, 2 * this.#claims.size)
  }
}

/** Number of names beyond which names without an owner are searched for. The next search is at twice as many as then remain. */
const MOST = 1_000
/** Replaced throttlers that stay open beside a later one. */
const MOST_REPLACED = 10

/** The rules by a store's value, and by its address. */
const byValue = new WeakMap<MeetingPoint, Names>()
/** The throttlers at an address keep its rules alive, so that a process that opens stores at ever new addresses forgets the old ones. */
const byAddress = new Map<string, WeakRef<Names>>()
const gone = new FinalizationRegistry<string>((id) => {
  if (byAddress.get(id)?.deref() === undefined) byAddress.delete(id)
})

/** The rules at a store: shared by all values with the same address. */
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

/** Several throttlers that follow rules get a change of them one after the other. */
function bothFollow(one: Claim, two: Claim): boolean {
  return [one, two].every(({ owner }) => owner.deref()?.followed !== undefined)
}

/** Whether the source line that makes a later rule now has also made an earlier one. In production a line is evaluated once. */
function takesOver(later: Claim, earlier: Claim): boolean {
  if (nodeEnv() === 'production') return false
  const [site, before] = [later.place.site, earlier.place.site]
  if (site !== undefined && before !== undefined) return isMadeAgain(before, site)
  // Without known lines, the rules must be the same, word for word.
  return site === before && differenceOf(earlier, later, asText) === undefined
}

/** Deno throws for a variable without a permission to read it. */
function nodeEnv(): string | undefined {
  try {
    return globalThis.process?.env['NODE_ENV']
  } catch {
    return undefined
  }
}

function replaceAt(owner: Claimant, rules: readonly PolicyOptions<never>[]): void {
  try {
    owner.replace?.(rules)
  } catch (error) {
    if (error instanceof WeirError && error.code !== 'WEIR_CLOSED') owner.warn?.(error, 'replaced')
  }
}

function duplicate(one: Claim, two: Claim, difference: string): WeirError {
  return new WeirError(
    'WEIR_DUPLICATE_POLICY',
    `Two throttlers with the same store have different rules named ${show(two.policy.name)}: ${difference}. One is made at ${one.place.text}, the other at ${two.place.text}. Give one of them another "name", or both the same rule. If a module is evaluated twice, e.g. in two bundles, keep its throttler on globalThis.`,
  )
}

/** An option with its functions as their source. */
function asText(option: unknown): unknown {
  if (typeof option === 'function') return String(option)
  if (Array.isArray(option)) return option.map(asText)
  return isData(option) ? Object.fromEntries(Object.entries(option).map(([name, value]) => [name, asText(value)])) : option
}

/**
 * The difference between two rules. Undefined if there is none.
 *
 * @param read returns the compared value of an option
 */
function differenceOf(one: Claim, two: Claim, read: (option: unknown) => unknown = (option) => option): string | undefined {
  const of = (what: string, first: unknown, second: unknown): string =>
    typeof first === 'function' && typeof second === 'function'
      ? `${what} is a function, and another one`
      : `${what} is ${show(first)} and ${show(second)}`
  const [first, second] = [one.policy, two.policy].map(({ interval, calendar }) => calendar?.id ?? interval)
  if (first !== second) return of('"interval"', first, second)
  if (one.policy.algorithm.id !== two.policy.algorithm.id) return of('"algorithm"', one.policy.algorithm.id, two.policy.algorithm.id)
  const [ours, theirs] = [one, two].map(({ policy }) => show(policy.algorithm.settings?.(policy.limit) ?? {}))
  if (ours !== theirs && one.policy.limit === two.policy.limit) return `options of "algorithm" are ${ours} and ${theirs}`
  if (one.policy.coordination !== two.policy.coordination) return of('"coordination"', one.policy.coordination, two.policy.coordination)
  if (one.policy.limit !== two.policy.limit) return of('"limit"', one.policy.limit, two.policy.limit)
  if (!alike(read(one.rule.limit), read(two.rule.limit))) return of('"limit"', one.rule.limit, two.rule.limit)
  if (!alike(read(one.rule.key), read(two.rule.key))) return of('"key"', one.rule.key, two.rule.key)
  if (!alike(read(one.rule.match), read(two.rule.match))) return of('"match"', one.rule.match, two.rule.match)
  return undefined
}
