// A reporter of `node --test` that prints a line of JSON for each case that ends.
interface TestEvent {
  readonly type: string
  readonly data: {
    readonly name: string
    readonly file?: string
    readonly skip?: string | boolean
    readonly details?: { readonly type?: string; readonly error?: Error }
  }
}

/** A case of the published tests. */
export interface Case {
  readonly file: string
  readonly name: string
  /** Undefined if it passed. */
  readonly error?: string
}

export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    const { name, file = '', skip, details } = data
    if ((type !== 'test:pass' && type !== 'test:fail') || details?.type === 'suite' || skip !== undefined) continue
    const { cause } = details?.error ?? {}
    const error = type === 'test:pass' ? undefined : String(cause instanceof Error ? cause.message : details?.error)
    yield `${JSON.stringify({ file, name, error } satisfies Record<keyof Case, unknown>)}\n`
  }
}
