/** The state of the rules that a process follows. */
export interface RulesStatus {
  /** The version that holds; undefined while policies of the code do. */
  readonly version: number | undefined
  /** The beginning of a digest of the document: tells documents apart that carry the same version. */
  readonly digest: string | undefined
  /** Whether the version came from the source, or from the file of the last good rules. */
  readonly from: 'source' | 'file' | undefined
  /** The newest document that was rejected since, with its first problem and the place of that problem. */
  readonly rejected: { readonly version: number | undefined; readonly problem: string } | undefined
  /** Why the source can't be read; undefined while it can. */
  readonly away: string | undefined
}

/** A document that a source has held. */
export interface RulesVersion {
  /** Undefined where it can't be read, or is too long to be read only to be listed. */
  readonly version: number | undefined
  readonly digest: string
  /** The document's own notes on its change. */
  readonly at: string | undefined
  readonly by: string | undefined
  readonly why: string | undefined
  /** Since when it has held at this node, milliseconds since the Unix epoch; undefined where it has not. */
  readonly since: number | undefined
}

/** Rules as they were written, with the overrides that were checked. */
export interface HeldRules {
  readonly policies: readonly unknown[]
  /** `until` in milliseconds since the Unix epoch, `Infinity` where it stays. */
  readonly overrides: readonly { readonly policy: string; readonly key: string; readonly limit: number; readonly until: number }[]
}

/** The rules that a throttler follows, for those who look at them. */
export interface FollowedRules {
  readonly status: RulesStatus
  /** The source's name. */
  readonly source: string
  /** The rules in use; undefined while policies from code are. */
  readonly held: (HeldRules & { readonly next: HeldRules | undefined }) | undefined
  /** The documents of the source, the newest first; where it keeps none, those that this process has seen. Never rejects. */
  versions(): Promise<readonly RulesVersion[]>
}
