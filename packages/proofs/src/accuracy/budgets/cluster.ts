import { type AnyPolicyOptions, createThrottler, type Receipt, type ReserveOptions, type Throttler } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { NodeClock, SeededRandom, SimulatedStore, VirtualTime } from '@weir/testing'

/** One process of a cluster. */
export interface Process {
  readonly throttler: Throttler
  readonly clock: NodeClock
}

/** Milliseconds in which processes start and learn to count each other. */
const BOOT = 4_000
/** The round trip to the store, in milliseconds. */
const ROUND_TRIP = 1

/** Processes with reservations, in virtual time. Any of them may vanish, as if it were killed. */
export class BudgetCluster {
  readonly time: VirtualTime = new VirtualTime(-BOOT)
  readonly random: SeededRandom
  readonly store: SimulatedStore
  readonly processes: Process[] = []
  readonly #policies: readonly AnyPolicyOptions[]
  #started = 0

  private constructor(policies: readonly AnyPolicyOptions[], seed: number) {
    this.#policies = policies
    this.random = new SeededRandom(seed)
    this.store = new SimulatedStore({
      time: this.time,
      random: this.random.stream('network'),
      network: { latency: ROUND_TRIP / 2 },
    })
  }

  /** A cluster at moment 0. */
  static async start(policies: readonly AnyPolicyOptions[], count: number, seed: number): Promise<BudgetCluster> {
    const cluster = new BudgetCluster(policies, seed)
    for (let i = 0; i < count; i++) await cluster.add()
    await cluster.to(0)
    return cluster
  }

  async add(): Promise<Process> {
    const { time, store } = this
    const random = this.random.stream(`process ${this.#started++}`)
    const clock = new NodeClock(time, { origin: random.next() * 1e6 })
    const throttler = createThrottler({ policies: this.#policies, store, clock, random: () => random.next() })
    throttler.on('storeDown', () => {})
    throttler.on('warning', () => {})
    throttler.start()
    // Code of a store's policies is loaded in real time.
    await adapterOf(throttler).inspected.coordinator?.loading
    await store.opened()
    const process = { throttler, clock }
    this.processes.push(process)
    return process
  }

  kill(process: Process): void {
    process.clock.stop()
    this.store.sever(process.throttler.nodeId)
    this.processes.splice(this.processes.indexOf(process), 1)
  }

  /** Lets time pass until a moment. */
  to(moment: number): Promise<void> {
    return this.time.runUntil(moment)
  }

  pass(milliseconds: number): Promise<void> {
    return this.to(this.time.now + milliseconds)
  }

  /** Waits for a promise in virtual time. */
  async settled<Value>(promise: Promise<Value>): Promise<Value> {
    let done = false
    const finished = promise.finally(() => {
      done = true
    })
    finished.catch(() => {})
    for (let waited = 0; !done && waited < 60_000; waited++) await this.pass(1)
    return finished
  }

  reserve(process: Process, key: string, options: ReserveOptions): Promise<Receipt> {
    return process.throttler.reserveAsync(key, options)
  }

  /** Units of a policy's key that all processes have used. */
  async usage(key: string, process: Process = this.processes[0] as Process): Promise<number> {
    const [usage] = await this.settled(process.throttler.usage(key))
    return usage?.used ?? Number.NaN
  }

  stop(): void {
    for (const { clock } of this.processes) clock.stop()
  }
}
