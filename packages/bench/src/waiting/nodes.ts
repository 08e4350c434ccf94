import { type AnyPolicyOptions, createThrottler, type QueueOptions, type Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { NodeClock, SeededRandom, SimulatedStore, VirtualTime } from '@weir/testing'

/** Milliseconds before moment 0 in which processes start and learn to count each other. */
const BOOT = 4_000

export interface NodesOptions {
  /** One policy, or several that count the same requests. */
  readonly policy: AnyPolicyOptions | readonly AnyPolicyOptions[]
  readonly nodes: number
  /** The round trip to the store, in milliseconds. */
  readonly roundTrip: number
  readonly seed: number
  readonly queue: QueueOptions
}

/** Processes with waiting requests, in virtual time. */
export interface Nodes {
  readonly time: VirtualTime
  readonly random: SeededRandom
  readonly store: SimulatedStore
  readonly throttlers: readonly Throttler[]
  /** Stops everything immediately. */
  stop(): void
}

/** Starts processes that share a store. Virtual time does not pass yet. */
export async function startNodes({ policy, nodes, roundTrip, seed, queue }: NodesOptions): Promise<Nodes> {
  const time = new VirtualTime(-BOOT)
  const random = new SeededRandom(seed)
  const store = new SimulatedStore({ time, random: random.stream('network'), network: { latency: roundTrip / 2 } })
  const clocks: NodeClock[] = []
  const throttlers = Array.from({ length: nodes }, (_, node) => {
    const own = random.stream(`node ${node}`)
    const clock = new NodeClock(time, { origin: own.next() * 1e6 })
    clocks.push(clock)
    const throttler = createThrottler({ policies: [policy].flat(), store, clock, random: () => own.next(), queue })
    throttler.on('storeDown', () => {})
    throttler.on('warning', () => {})
    return throttler
  })
  for (const throttler of throttlers) await throttler.acquire('', { signal: AbortSignal.abort() }).catch(() => {})
  for (const throttler of throttlers) throttler.start()
  // Code that comes with the first policy of its kind is loaded in real time.
  for (const one of throttlers) await adapterOf(one).inspected.coordinator?.loading
  await store.opened()
  return {
    time,
    random,
    store,
    throttlers,
    stop() {
      for (const clock of clocks) clock.stop()
    },
  }
}
