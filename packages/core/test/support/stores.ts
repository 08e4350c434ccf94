import type { Policy } from '../../src/decide/policy.ts'
import { Hub } from '../../src/hub/hub.ts'
import { connectToHub } from '../../src/hub/memory-store.ts'
import type { Decide, Decider, StoreConnection, StoreNode, SyncReply, SyncRequest, Verdict } from '../../src/store/contract.ts'
import { coordinate } from '../../src/sync/coordinator.ts'
import type { Store } from '../../src/throttler/coordinator.ts'
import { type Ordinal, ordinalAt } from '../../src/time/intervals.ts'
import type { World, WorldClock } from './world.ts'

/** The current behaviour of a store. */
export type Health =
  | 'up'
  /** Rejects at once. */
  | 'rejecting'
  /** Does not answer, and rejects at its storeTimeout. No request reaches it. */
  | 'hanging'
  /** Executes requests, but its answers are lost: rejects at its storeTimeout. */
  | 'mute'

/** A store whose processes meet in a hub. It can be slow or fail. */
export class TestStore implements Store {
  readonly kind = 'test'
  readonly decides = (): boolean => true
  readonly reserves = true
  readonly coordinate: Store['coordinate'] = coordinate
  readonly hub: Hub
  health: Health = 'up'
  /** The error of rejected calls. */
  failure: unknown = new Error('The store rejects.')
  /** Milliseconds from request to reply. */
  roundTrip = 0
  /** Milliseconds after which a sync without an answer is given up. */
  storeTimeout = 300
  /** The time and the content of each request. */
  readonly requests: { readonly at: number; readonly node: string; readonly request: SyncRequest }[] = []
  /** The requests to decide that the store has received. */
  readonly decided: { readonly at: number; readonly node: string; readonly request: Decide }[] = []
  /** Keys whose state it can't read. */
  readonly unreadable: Set<string> = new Set<string>()
  /** Processes whose requests no longer reach it, as if they were killed. */
  readonly dead: Set<string> = new Set<string>()
  /** Processes whose requests it can decide. */
  deciders = 0
  /** Number of parts that the keys lie in, by their length. */
  parts = 1
  /** Whether the hub's announcements reach the processes. */
  announces = true
  readonly #world: World
  /** The store's clock. Tests may step it. */
  readonly clock: WorldClock

  constructor(world: World, offset = 0) {
    this.#world = world
    this.clock = world.clock({ offset })
    this.hub = new Hub(this.clock)
  }

  open(node: StoreNode): StoreConnection {
    const announced = (announcement: Parameters<StoreNode['announced']>[0]): void => {
      if (this.announces && this.health === 'up') node.announced(announcement)
    }
    const connection = connectToHub(this.hub, { ...node, clock: this.clock, announced })
    return {
      sync: (request) => this.#sync(connection, node.id, request),
      decider: async () => {
        const decider = await (connection.decider as () => Promise<Decider>)()
        this.deciders++
        return {
          partOf: (key) => (this.parts === 1 ? 0 : key.length % this.parts),
          decide: (request) => this.#decide(decider, node.id, request),
        }
      },
      close: () => connection.close(),
    }
  }

  async #decide(decider: Decider, node: string, request: Decide): Promise<readonly Verdict[] | undefined> {
    this.decided.push({ at: this.#world.time, node, request })
    const health = this.dead.has(node) ? 'hanging' : this.health
    if (health === 'rejecting') throw this.failure
    if (health === 'hanging') {
      await this.#wait(this.storeTimeout)
      throw new Error('The store did not answer.')
    }
    if (this.roundTrip > 0) await this.#wait(this.roundTrip / 2)
    if (request.questions.some(({ key }) => this.unreadable.has(key))) return undefined
    const verdicts = await decider.decide(request)
    if (health === 'mute') {
      await this.#wait(this.storeTimeout)
      throw new Error('The answer was lost.')
    }
    if (this.roundTrip > 0) await this.#wait(this.roundTrip / 2)
    return verdicts
  }

  async #sync(connection: StoreConnection, node: string, request: SyncRequest): Promise<SyncReply> {
    this.requests.push({ at: this.#world.time, node, request })
    const health = this.dead.has(node) ? 'hanging' : this.health
    if (health === 'rejecting') throw this.failure
    if (health === 'hanging') {
      await this.#wait(this.storeTimeout)
      throw new Error('The store did not answer.')
    }
    if (this.roundTrip > 0) await this.#wait(this.roundTrip / 2)
    const reply = await connection.sync(request)
    if (health === 'mute') {
      await this.#wait(this.storeTimeout)
      throw new Error('The answer was lost.')
    }
    if (this.roundTrip > 0) await this.#wait(this.roundTrip / 2)
    return reply
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      if (milliseconds < Number.POSITIVE_INFINITY) this.clock.setTimeout(resolve, milliseconds)
    })
  }

  /** The hub's counts of a key in the interval that contains the time `at`, milliseconds since the epoch. */
  total(policy: Policy, key: string, at: number): { taken: number; given: number } {
    return hubTotal(this.hub, policy, key, ordinalAt(at, policy.interval))
  }

  /** Number of key writes in all requests so far. */
  get entries(): number {
    return this.requests.reduce((sum, { request }) => sum + request.entries.length, 0)
  }
}

/** A hub's counts of a key of a fixed window. */
export function hubTotal(hub: Hub, policy: Policy, key: string, ordinal: Ordinal): { taken: number; given: number } {
  const wire = {
    id: policy.id,
    width: policy.interval,
    cells: 1,
    limit: policy.limit,
    hot: Number.POSITIVE_INFINITY,
    ttl: 2 * policy.interval,
  }
  const { results } = hub.exchange('observer', { entries: [{ policy: wire, key, cells: [{ ordinal, taken: 0, given: 0 }] }], blocks: [] })
  const { taken, given } = results[0]?.cells[0] ?? { taken: 0, given: 0 }
  return { taken, given }
}
