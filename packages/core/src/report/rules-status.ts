/** The state of the rules that a process follows. */
export interface RulesStatus {
  /** The version in use. Undefined while policies of the code are in use. */
  readonly version: number | undefined
  /** The beginning of a digest of the document. It distinguishes documents with the same version. */
  readonly digest: string | undefined
  /** Whether the version came from the source, or from the file of the last good rules. */
  readonly from: 'source' | 'file' | undefined
  /** The newest document that was rejected since then, with its first problem and the place of that problem. */
  readonly rejected: { readonly version: number | undefined; readonly problem: string } | undefined
  /** The reason why the source can't be read. Undefined while it can be read. */
  readonly away: string | undefined
}

/** A document from the history of a source. */
export interface RulesVersion {
  /** Undefined if the document can't be read, or is too long to be parsed for a list. */
  readonly version: number | undefined
  readonly digest: string
  /** The document's own notes on its change. */
  readonly at: string | undefined
  readonly by: string | undefined
  readonly why: string | undefined
  /** The start of its use by this process, in milliseconds since the Unix epoch. Undefined if this process never used it. */
  readonly since: number | undefined
}

/** Rules as they were written, with their checked overrides. */
export interface HeldRules {
  readonly policies: readonly unknown[]
  /** `until` is in milliseconds since the Unix epoch, and `Infinity` for an override without an end. */
  readonly overrides: readonly { readonly policy: string; readonly key: string; readonly limit: number; readonly until: number }[]
}

/** The rules that a throttler follows, for inspection. */
export interface FollowedRules {
  readonly status: RulesStatus
  /** The source's name. */
  readonly source: string
  /** The rules in use. Undefined while policies from code are in use. */
  readonly held: (HeldRules & { readonly next: HeldRules | undefined }) | undefined
  /** The documents of the source, newest first. If it keeps none, the documents that this process has used. Never rejects. */
  versions(): Promise<readonly RulesVersion[]>
}
