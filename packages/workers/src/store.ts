import { type Duration, parseDuration, WeirError } from '@weir/core'
import { STEP_IDS } from '@weir/core/hub'
import { backgroundStore, checkOptions, invalidOption, type Store } from '@weir/core/sync'
import { HubConnection } from './connection.ts'
import { bindingOf, type HubNamespace, type HubStub } from './platform.ts'

/** Options of `durableObjectStore`. */
export interface DurableObjectStoreOptions {
  /**
   * Spreads the keys over this many Durable Objects: 1 to 64.
   *
   * Cloudflare recommends at most about 1,000 calls per second for one object. Each isolate that gets requests calls all objects once a
   * second. Change the number only while no key is at its limit, because most keys move to another object.
   *
   * @default 1
   */
  readonly shards?: number
  /**
   * Limits how long a sync waits for an object before it counts as failed: 10 ms to 60 s.
   *
   * Requests wait for the object only with coordination `'central'` and `'leased'`, at most for `storeTimeout`.
   *
   * @default 2000
   */
  readonly timeout?: Duration
}

/**
 * Connects the isolates of a Cloudflare Worker through a Durable Object of your own account.
 *
 * Requests don't wait for it by default. Bind the class `WeirHub` in `wrangler.jsonc`, and export it from the main module of your Worker.
 *
 * @param binding - the name of the binding, or the binding itself (`env.WEIR`)
 * @throws {WeirError} `WEIR_INVALID_OPTION` or `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * ```ts
 * import { throttle } from '@weir/web'
 * import { durableObjectStore } from '@weir/workers'
 * export { WeirHub } from '@weir/workers'
 *
 * const limit = throttle({ key: 'ip', limit: 100, interval: '1m', store: durableObjectStore('WEIR') })
 *
 * export default { fetch: limit(() => new Response('Hello')) }
 * ```
 */
export function durableObjectStore(binding: string | HubNamespace, options: DurableObjectStoreOptions = {}): Store {
  if (!(typeof binding === 'string' && binding !== '') && !isNamespace(binding)) {
    throw invalidOption('binding', binding, 'the name of a Durable Object binding such as "WEIR", or the binding itself (env.WEIR)')
  }
  checkOptions('durableObjectStore', options, ['shards', 'timeout'], 'options such as { shards: 4 }')
  const { shards = 1 } = options
  const timeout = parseDuration(options.timeout ?? 2_000, 'timeout', 10, 60_000)
  if (!Number.isSafeInteger(shards) || shards < 1 || shards > 64) throw invalidOption('shards', shards, 'a whole number from 1 to 64')
  return backgroundStore({
    kind: 'durable-object',
    ...(typeof binding === 'string' && { address: binding }),
    reserves: true,
    decides: (step) => (STEP_IDS as readonly string[]).includes(step),
    open: (node) => new HubConnection(node, shards, timeout, (shard) => stubOf(binding, shard)),
  })
}

/** The object of a shard. Made for each call, because a stub belongs to the request that made it. */
function stubOf(binding: string | HubNamespace, shard: number): HubStub {
  const namespace = typeof binding === 'string' ? bindingOf(binding) : binding
  if (!isNamespace(namespace)) throw missingBinding(String(binding))
  return namespace.get(namespace.idFromName(`weir ${shard}`) as never) as HubStub
}

function isNamespace(value: unknown): value is HubNamespace {
  return typeof value === 'object' && value !== null && typeof (value as Partial<HubNamespace>).idFromName === 'function'
}

function missingBinding(name: string): WeirError {
  const bindings = `"durable_objects": { "bindings": [{ "name": "${name}", "class_name": "WeirHub" }] }`
  const migrations = '"migrations": [{ "tag": "weir", "new_sqlite_classes": ["WeirHub"] }]'
  return new WeirError(
    'WEIR_INVALID_OPTION',
    `This Worker has no Durable Object binding "${name}". Add to wrangler.jsonc: ${bindings}, ${migrations}. Export the class from the main module: export { WeirHub } from '@weir/workers'`,
  )
}
