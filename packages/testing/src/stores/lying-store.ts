import {
  type Announcement,
  backgroundStore,
  type Store,
  type StoreConnection,
  type StoreNode,
  type SyncReply,
  type SyncRequest,
} from '@weir/core/sync'
import type { SeededRandom } from '../random/random.ts'

/** Changes to the values of an honest store on their way to a process. */
export interface Lies {
  /** Replaces the honest connection. May throw. */
  open?(connection: StoreConnection, node: StoreNode): unknown
  /** Replaces an honest reply. May throw, or return a promise that rejects or never settles. */
  reply?(reply: SyncReply, request: SyncRequest): unknown
  /** Replaces an announcement. */
  announcement?(announcement: Announcement): unknown
}

/**
 * A store that replaces the connection, replies or announcements of an honest one. Use it to test that invalid ones do no harm.
 *
 * @example
 * const store = lyingStore(memoryStore(), { reply: (reply) => ({ ...reply, time: Number.NaN }) })
 */
export function lyingStore(honest: Store, lies: Lies): Store {
  return backgroundStore({
    kind: 'lying',
    open(node) {
      const { announcement: lie } = lies
      const announced = node.announced as (announcement: unknown) => void
      const connection = honest.open(lie === undefined ? node : { ...node, announced: (announcement) => announced(lie(announcement)) })
      const own: StoreConnection = {
        sync: async (request) => {
          const reply = await connection.sync(request)
          return (lies.reply === undefined ? reply : await lies.reply(reply, request)) as SyncReply
        },
        close: () => connection.close(),
      }
      return (lies.open === undefined ? own : lies.open(own, node)) as StoreConnection
    },
  })
}

/** Makes values that break programs, a new one with each call. Most of them are invalid in replies and messages. */
export const NONSENSE: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => Number.NEGATIVE_INFINITY,
  () => -1,
  () => 0,
  () => 0.5,
  () => 2 ** 53,
  () => 1e300,
  () => 10n ** 30n,
  () => true,
  () => '',
  () => '1',
  () => '\u0000\n\u001b[31m',
  () => 'x'.repeat(5_000),
  () => Symbol('nonsense'),
  () => () => {
    throw new Error('called')
  },
  () => [],
  () => [[]],
  () => new Array(10_000),
  () => ({}),
  () => ({ length: 1e9 }),
  () => Object.create(null),
  () => new Map([[1, 2]]),
  () => new Date(Number.NaN),
  () => new Float64Array(4),
  () => throwing(),
  () => new Proxy({}, thrower),
  () => new Proxy([], thrower),
  () => revoked(),
  () => fickle(),
  () => circular(),
]

/**
 * Copies a value and replaces up to `changes` values anywhere in it: by nonsense, by a value from another place, or by nothing.
 */
export function mutated(value: unknown, random: SeededRandom, changes: number = 3): unknown {
  const root = { value: copied(value) }
  const places = placesIn(root)
  const values = places.map(({ holder, name }) => holder[name])
  for (let change = random.below(changes) + 1; change > 0; change--) {
    const place = random.below(places.length)
    const { holder, name } = places[place] as Place
    const before = values[place]
    const what = random.below(10)
    if (what === 0) delete holder[name]
    else if (what === 1) holder[name] = values[random.below(values.length)]
    else if (what === 2 && Array.isArray(before)) holder[name] = [...before, ...before]
    else holder[name] = (NONSENSE[random.below(NONSENSE.length)] as () => unknown)()
  }
  return root.value
}

type Holder = { [name: string]: unknown }
interface Place {
  readonly holder: Holder
  readonly name: string
}

function copied(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copied)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, copied(item)]))
}

function placesIn(holder: object): Place[] {
  return Object.entries(holder).flatMap(([name, value]) => {
    const here = { holder: holder as Holder, name }
    return typeof value === 'object' && value !== null ? [here, ...placesIn(value)] : [here]
  })
}

const thrower: ProxyHandler<object> = {
  get: fails,
  has: fails,
  ownKeys: fails,
  getOwnPropertyDescriptor: fails,
  getPrototypeOf: fails,
}

function fails(): never {
  throw new Error('nonsense')
}

/** An object whose properties throw when they are read. */
function throwing(): object {
  const names = ['time', 'results', 'blocks', 'heartbeat', 'cells', 'blocked', 'ordinal', 'taken', 'given', 'nodes', 'type', 'key']
  return Object.defineProperties(
    {},
    Object.fromEntries([...names, 'policyId', 'length', 'message', 'code', 'then'].map((name) => [name, { get: fails, enumerable: true }])),
  )
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** An object whose numbers are right at the first read, and wrong afterwards. */
function fickle(): object {
  let reads = 0
  return new Proxy({}, { get: () => (reads++ < 1 ? 1 : Number.NaN) })
}

function circular(): object {
  const circle: { self?: object; cells?: object } = {}
  circle.self = circle
  circle.cells = [circle]
  return circle
}
