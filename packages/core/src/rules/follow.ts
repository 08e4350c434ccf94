import type { Coordination } from '../algorithms/algorithm.ts'
import { waitsForStore } from '../decide/coordination.ts'
import { type Duration, parseDuration } from '../options/duration.ts'
import { invalidOption, WeirError, warnProcess } from '../report/errors.ts'
import { checkOptions } from '../report/names.ts'
import { withoutPage } from '../report/page.ts'
import type { FollowedRules, HeldRules, RulesStatus } from '../report/rules-status.ts'
import { printable, reasonOf } from '../report/show.ts'
import { type AdapterSide, adapterOf } from '../throttler/adapter-side.ts'
import type { Throttler } from '../throttler/throttler.ts'
import { keptAlive } from '../time/clock.ts'
import { type CheckedRules, checkRules } from './check.ts'
import type { RulesDocument } from './document.ts'
import { LiveRules } from './live-rules.ts'
import { checkNamed, NAMED_KINDS, type NamedFunctions } from './named.ts'
import { type JudgedPolicy, judgementOf } from './next.ts'
import { type ParsedRules, type ParseOptions, parseRules } from './parse.ts'
import { described, RulesError } from './problems.ts'
import { Reading } from './reading.ts'
import type { RulesSource } from './source.ts'
import { readWhole, writeWhole } from './sources/file.ts'
import { digestOf, Versions } from './versions.ts'

/** Options of `follow`. */
export interface FollowOptions<Req = unknown> extends NamedFunctions<Req>, ParseOptions {
  /**
   * Stores the last valid document in this file, so that a process can start with it while the source is down.
   *
   * @default none
   * @see `@weir/core/docs/guides/rules.md`
   */
  readonly lastGood?: string
  /**
   * Limits how long the source may take to answer. A duration from 10 ms to 10 min.
   *
   * @default '5s'
   */
  readonly timeout?: Duration
}

/** A throttler, or the middleware or plugin of an adapter, which has one. */
export type Followed<Req> = Throttler<string, Req> | { readonly throttler: Throttler<string, Req> }

/** Rules that a throttler follows. */
export interface RulesFollower {
  /**
   * Resolves after the first read of the source, and of `lastGood` if the source failed. Never rejects. Await it before the server listens.
   */
  readonly ready: Promise<void>
  readonly status: RulesStatus
  /** The decisions that the candidate rules (`next` of the document) would have made in this process so far. Empty if there are none. */
  judged(): readonly JudgedPolicy[]
  /** Stops following. The rules stay in use. Resolves when nothing is pending any more, such as a write of `lastGood`. */
  close(): Promise<void>
}

const OPTIONS: readonly string[] = [...NAMED_KINDS, 'yaml', 'lastGood', 'timeout']
const TIMEOUT = 5_000
/** Longest text of a problem in a status, in characters. */
const LONGEST_PROBLEM = 300
const NONE: RulesStatus = Object.freeze({ version: undefined, digest: undefined, from: undefined, rejected: undefined, away: undefined })

/**
 * Makes a throttler use the rules of a source, now and whenever they change. A document is checked as a whole before anything changes. If
 * it is rejected, or the source can't be read, the current rules stay in use. Policies whose name, interval, algorithm and coordination
 * stay the same keep their counts and blocks.
 *
 * @param target a throttler, or the middleware or plugin of an adapter
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * const rules = follow(throttler, fileRules('rules.json'), { algorithms: { tokenBucket }, keys: { tenant: (req) => req.tenant } })
 * await rules.ready
 */
export function follow<Req = unknown>(target: Followed<Req>, source: RulesSource, options: FollowOptions<Req> = {}): RulesFollower {
  checkOptions('follow', options, OPTIONS, 'options such as { keys: { tenant: (req) => req.tenant } }')
  checkNamed(options as NamedFunctions<never>)
  const { interval, settle = 0, read } = source ?? {}
  if (typeof read !== 'function' || !(interval >= 100) || !(settle >= 0)) {
    throw invalidOption('source', source, 'a source of rules, such as fileRules("rules.json")')
  }
  return new Follower(target, source, options)
}

class Follower<Req> implements RulesFollower, FollowedRules {
  readonly #ready: Promise<void>
  readonly #throttler: Throttler<string, Req>
  readonly #side: AdapterSide<string, Req>
  readonly #source: RulesSource
  readonly #options: FollowOptions<Req>
  /** Whether every function that decides can let a request wait. */
  readonly #mayWait: boolean
  readonly #live: LiveRules<Req>
  readonly #reading: Reading
  readonly #versions: Versions
  #status = NONE
  #closed = false
  /** The document in use, as it was written. */
  #document: Pick<RulesDocument, 'policies' | 'next'> | undefined
  /** The last text of the source, whether it was applied or rejected. */
  #seen: string | undefined
  /** Applies checked rules again that conflicted with another throttler, which may be closed by now. */
  #tryAgain: (() => Promise<void>) | undefined

  constructor(target: Followed<Req>, source: RulesSource, options: FollowOptions<Req>) {
    const adapter = 'throttler' in target
    this.#throttler = adapter ? target.throttler : target
    this.#side = adapterOf(this.#throttler)
    this.#mayWait = adapter || this.#side.waits
    this.#source = source
    this.#options = options
    this.#live = new LiveRules(this.#throttler)
    const timeout = parseDuration(options.timeout ?? TIMEOUT, 'timeout', 10, 600_000)
    this.#versions = new Versions(source, this.#side.clock, timeout, options.yaml)
    this.#side.inspected.followed = this
    this.#reading = new Reading(source, this.#side.clock, timeout, {
      closed: () => this.#throttler.state === 'closed',
      text: (text) => this.#look(text, 'source'),
      away: (why) => this.#away(why),
    })
    this.#ready = this.#begin()
  }

  get ready(): Promise<void> {
    return keptAlive(this.#side.clock, this.#ready)
  }

  get status(): RulesStatus {
    return this.#status
  }

  get source(): string {
    return this.#source.name
  }

  get held(): FollowedRules['held'] {
    const [document, rules] = [this.#document, this.#live.rules]
    if (document === undefined || rules === undefined) return undefined
    const set = ({ policies }: { readonly policies: readonly unknown[] }, { overrides }: Pick<HeldRules, 'overrides'>): HeldRules => {
      return { policies, overrides }
    }
    const { next } = document
    return { ...set(document, rules), next: next === undefined || rules.next === undefined ? undefined : set(next, rules.next) }
  }

  versions(): ReturnType<FollowedRules['versions']> {
    return keptAlive(this.#side.clock, this.#versions.list())
  }

  judged(): readonly JudgedPolicy[] {
    return judgementOf(this.#side.inspected)
  }

  close(): Promise<void> {
    this.#closed = true
    this.#live.stop()
    return keptAlive(
      this.#side.clock,
      this.#reading.stop().then(() => this.#ready),
    )
  }

  async #begin(): Promise<void> {
    await this.#reading.start()
    const { lastGood } = this.#options
    if (this.#status.version !== undefined || lastGood === undefined || this.#closed) return
    try {
      const text = await readWhole(lastGood)
      // The source may have answered meanwhile.
      if (this.#status.version === undefined && !this.#closed) await this.#look(text, 'file')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') this.#warnOfFile(error)
    }
  }

  async #look(text: string, from: 'source' | 'file'): Promise<void> {
    if (this.#throttler.state === 'closed') return
    if (from === 'source') {
      if (this.#status.away !== undefined) this.#tell({ away: undefined })
      if (text === this.#seen) return this.#tryAgain?.()
      this.#seen = text
      this.#tryAgain = undefined
    }
    let parsed: ParsedRules
    let rules: CheckedRules<Req>
    try {
      parsed = parseRules(text, { yaml: this.#options.yaml })
      rules = this.#check(parsed)
    } catch (error) {
      this.#reject(error)
      return
    }
    const { policies, next } = parsed.value as RulesDocument
    // The overrides are left out, because they take much memory and are kept in their checked form.
    await this.#hold(text, { policies, ...(next !== undefined && { next: { policies: next.policies } }) }, rules, from)
  }

  async #hold(
    text: string,
    document: Pick<RulesDocument, 'policies' | 'next'>,
    rules: CheckedRules<Req>,
    from: 'source' | 'file',
  ): Promise<void> {
    const digest = digestOf(text)
    try {
      this.#live.set(rules)
      this.#document = document
      this.#versions.holds(digest, rules)
    } catch (error) {
      if (this.#tryAgain === undefined || from === 'file') this.#reject(error, rules.version)
      if (from === 'source') this.#tryAgain = () => this.#hold(text, document, rules, from)
      return
    }
    if (from === 'source') this.#tryAgain = undefined
    const before = this.#status.version
    this.#tell({ version: rules.version, digest, from, rejected: from === 'file' ? this.#status.rejected : undefined })
    const { by, why } = rules.change ?? {}
    this.#emitter.emit('rulesApplied', { version: rules.version, before, by, why })
    if (from === 'source') await this.#keep(text)
  }

  #check(parsed: ParsedRules): CheckedRules<Req> {
    const { yaml: _, lastGood: __, timeout: ___, ...named } = this.#options
    const rules = checkRules<Req>(parsed, { ...named, store: this.#side.names !== undefined })
    const place = this.#mayWait ? -1 : rules.policies.findIndex(waits)
    if (place < 0) return rules
    const message =
      'Its requests may wait for the store or for their turn, but the application may use "check", which can\'t wait. Follow the middleware instead of its throttler, or start with a policy that waits.'
    const at = parsed.placeOf(['policies', place])
    throw new RulesError([{ path: `policies[${place}]`, line: at?.line, column: at?.column, message }], rules.version)
  }

  #reject(error: unknown, rejected?: number): void {
    const known = error instanceof RulesError ? error : undefined
    const problem = known === undefined ? reasonOf(error, LONGEST_PROBLEM) : described(known.problems[0] as RulesError['problems'][0])
    this.#tell({ rejected: { version: known?.version ?? rejected, problem: printable(problem, LONGEST_PROBLEM) } })
    const told = known ?? new WeirError('WEIR_RULES_REJECTED', `Rules are rejected: ${reasonOf(error)}`, { cause: error })
    const { version } = this.#status
    const stays = version === undefined ? 'the policies in the code still apply' : `version ${version} still applies`
    const message = `${withoutPage(told.message)} (${this.#source.name}; ${stays})`
    this.#report(new WeirError('WEIR_RULES_REJECTED', message, { cause: told }))
  }

  #away(why: unknown): void {
    const away = reasonOf(why, LONGEST_PROBLEM)
    const first = this.#status.away === undefined
    this.#tell({ away })
    if (!first) return
    const { version } = this.#status
    const stays = version === undefined ? 'The policies in the code still apply' : `Version ${version} still applies`
    this.#report(
      new WeirError(
        'WEIR_WARN_RULES_SOURCE',
        `Rules can't be read from ${this.#source.name}: ${away}. ${stays}, and Weir tries again. Check the source.`,
        { cause: why },
      ),
    )
  }

  async #keep(text: string): Promise<void> {
    const { lastGood } = this.#options
    if (lastGood === undefined) return
    try {
      await writeWhole(lastGood, text)
    } catch (error) {
      this.#warnOfFile(error)
    }
  }

  #warnOfFile(error: unknown): void {
    const what = `The file "lastGood" can't be used: ${reasonOf(error)}. Check its path and permissions.`
    this.#side.warn(new WeirError('WEIR_WARN_RULES_SOURCE', what, { cause: error }), 'lastGood')
  }

  /** Reports each time. The throttler's `warn` reports a problem once, but a document may be bad, good and bad again. */
  #report(error: WeirError): void {
    if (this.#emitter.has('warning')) this.#emitter.emit('warning', { error })
    else warnProcess(error.code, error.message)
  }

  get #emitter() {
    return this.#side.inspected.emitter
  }

  #tell(part: Partial<RulesStatus>): void {
    this.#status = Object.freeze({ ...this.#status, ...part })
  }
}

function waits(policy: { readonly coordination?: Coordination | undefined; readonly delay?: unknown; readonly dryRun?: unknown }): boolean {
  return policy.delay !== undefined || waitsForStore(policy)
}
