import process from 'node:process'

/** The parts of a Durable Object's storage that `WeirHub` uses. */
export interface ObjectStorage {
  list(options: { readonly prefix: string; readonly limit: number; readonly startAfter?: string }): Promise<Map<string, unknown>>
  put(rows: Readonly<Record<string, unknown>>): Promise<void>
  delete(names: string[]): Promise<number>
}

/** The parts of a Durable Object's state that `WeirHub` uses. */
export interface ObjectState {
  readonly storage: ObjectStorage
  blockConcurrencyWhile<T>(run: () => Promise<T>): Promise<T>
}

/** The methods of a `WeirHub`, as other Workers call them. Their results are `unknown`, because the object may run another version. */
export interface HubStub {
  sync(node: string, packed: unknown, seen: number | undefined): Promise<unknown>
  decide(node: string, packed: unknown): Promise<unknown>
  audit(entry: string | undefined, most: number): Promise<unknown>
  leave(node: string): Promise<unknown>
}

/** A binding of Durable Objects: the value of `env.WEIR`. */
export interface HubNamespace {
  idFromName(name: string): unknown
  get(id: never): unknown
}

type ObjectClass = new (state: ObjectState, env: unknown) => object

/**
 * The module `cloudflare:workers`. Looked up at run time, so that the package can be imported in Node.js too: by tests, and by tools that
 * read an application's configuration.
 */
const module = process.getBuiltinModule?.('cloudflare:workers') as unknown as
  | { readonly DurableObject: ObjectClass; readonly env: Readonly<Record<string, unknown>> }
  | undefined

/** The class of all Durable Objects, or one without any members outside of Workers. */
export const DurableObject: ObjectClass = module?.DurableObject ?? class {}

/** The value of a binding of this Worker. */
export function bindingOf(name: string): unknown {
  return module?.env[name]
}
