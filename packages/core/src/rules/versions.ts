import { createHash } from 'node:crypto'
import type { RulesVersion } from '../report/rules-status.ts'
import type { Clock } from '../time/clock.ts'
import type { CheckedRules } from './check.ts'
import { type ParseOptions, parseRules } from './parse.ts'
import type { RulesSource } from './source.ts'

/** The most documents that are listed. */
const LISTED = 20
/** The most documents that are remembered, so that each is parsed only once. */
const KNOWN = 100
/**
 * Longer documents are not parsed just for the list, because that would block the event loop. In UTF-16 units. YAML takes a hundred times
 * as long.
 */
const LONGEST_JSON = 500_000
const LONGEST_YAML = 10_000
/** Longest text of a change that is reported, in UTF-16 units. */
const LONGEST_TEXT = 1_000

/** The beginning of a digest of a document. */
export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}

/** The documents from the history of a source. If it keeps none, the documents that this process has used. */
export class Versions {
  readonly #source: RulesSource
  readonly #clock: Clock
  readonly #timeout: number
  readonly #yaml: ParseOptions['yaml']
  /** Documents by digest. The document that was in use last is the last entry. */
  readonly #known = new Map<string, RulesVersion>()

  /** @param timeout milliseconds that the source may take to answer */
  constructor(source: RulesSource, clock: Clock, timeout: number, yaml: ParseOptions['yaml']) {
    this.#source = source
    this.#clock = clock
    this.#timeout = timeout
    this.#yaml = yaml
  }

  /** Notes that a document is in use from now on. */
  holds(digest: string, { version, change }: CheckedRules<never>): void {
    this.#known.delete(digest)
    this.#note({ version, digest, at: change?.at, by: change?.by, why: change?.why, since: this.#clock.now() })
  }

  /** Lists documents, newest first. Never rejects. If the source does not answer, it lists the documents that this process has used. */
  async list(): Promise<readonly RulesVersion[]> {
    const texts = await this.#texts()
    if (texts === undefined)
      return [...this.#known.values()]
        .filter(({ since }) => since !== undefined)
        .reverse()
        .slice(0, LISTED)
    const versions: RulesVersion[] = []
    for (const text of texts) {
      const digest = digestOf(text)
      const known = this.#known.get(digest)
      versions.push(known ?? this.#note(this.#read(text, digest)))
      // The pause lets other work run between two documents.
      if (known === undefined) await new Promise<void>((resolve) => this.#clock.setTimeout(resolve, 0))
    }
    return versions
  }

  async #texts(): Promise<readonly string[] | undefined> {
    if (this.#source.history === undefined) return undefined
    let timer: ReturnType<Clock['setTimeout']> | undefined
    try {
      const late = new Promise<undefined>((resolve) => {
        timer = this.#clock.setTimeout(() => resolve(undefined), this.#timeout)
      })
      return await Promise.race([this.#source.history(LISTED), late])
    } catch {
      return undefined
    } finally {
      this.#clock.clearTimeout(timer)
    }
  }

  #note(version: RulesVersion): RulesVersion {
    this.#known.set(version.digest, version)
    if (this.#known.size > KNOWN) this.#known.delete(this.#known.keys().next().value as string)
    return version
  }

  /** A document's own notes. The document wasn't checked, and may have been rejected. */
  #read(text: string, digest: string): RulesVersion {
    const none: RulesVersion = { version: undefined, digest, at: undefined, by: undefined, why: undefined, since: undefined }
    if (text.length > (/^\s*\{/.test(text) ? LONGEST_JSON : LONGEST_YAML)) return none
    try {
      const { version, change } = parseRules(text, { yaml: this.#yaml }).value as {
        readonly version?: unknown
        readonly change?: Readonly<Record<string, unknown>>
      }
      return {
        ...none,
        version: Number.isSafeInteger(version) ? (version as number) : undefined,
        at: textOf(change?.['at']),
        by: textOf(change?.['by']),
        why: textOf(change?.['why']),
      }
    } catch {
      return none
    }
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, LONGEST_TEXT) : undefined
}
