import { randomUUID } from 'node:crypto'
import type { Snapshot } from '@weir/core/inspect'
import { type IpcService, serveIpc } from '@weir/core/ipc'
import { DemoError } from './errors.ts'
import { FRAMEWORKS, type Framework, type FromChild, type GatewayConfig, type StateChange, type Timing } from './processes/messages.ts'
import { Child } from './processes/parent.ts'
import { type ServerKind, type StoreChoice, shownUrl } from './store/choose.ts'
import { CommandCount } from './store/command-count.ts'
import { sleep } from './traffic/pace.ts'

/** A gateway process, with its reports to the parent. */
export interface Gateway {
  readonly framework: Framework
  readonly child: Child
  /** Name and version of the framework. */
  about: string
  port: number
  /** The last snapshot that it sent. */
  snapshot: Snapshot | undefined
  /** Timing of its requests since the warm-up. */
  timing: Timing | undefined
  /** Time of the snapshot in milliseconds since the epoch. */
  snapshotTime: number
  /** The last snapshot before the traffic began. */
  baseline: Snapshot | undefined
  readonly states: StateChange[]
}

export type Limits = Omit<GatewayConfig, 'framework' | 'backendPort' | 'store' | 'page'>

/** Milliseconds in which the gateways must find the store and each other. */
const MEET_DEADLINE = 10_000

/** All processes of the demo: the store, the backend and the gateways in front of it. */
export class Cluster {
  readonly choice: StoreChoice
  readonly gateways: Gateway[] = []
  /** Children that ended without an order. */
  readonly lost: string[] = []
  /** A description of the store. */
  storeText = ''
  /** The beginning of the demo's keys in the store. */
  namespace: string | undefined
  commands: CommandCount | undefined
  /** Address of the Redis server. Undefined without one. */
  url: string | undefined
  /** Address of the dashboard, if there is one. */
  page: string | undefined
  readonly #withPage: boolean
  #keeper: Child | undefined
  #ipc: IpcService | undefined
  #backend: Child | undefined

  constructor(choice: StoreChoice, withPage = false) {
    this.choice = choice
    this.#withPage = withPage
  }

  get gatewayCount(): number {
    return FRAMEWORKS.length
  }

  get ports(): readonly number[] {
    return this.gateways.map(({ port }) => port)
  }

  /** Starts all processes and waits until the gateways are synced. The caller must call `stop`, even if this fails. */
  async start(limits: Limits, signal: AbortSignal): Promise<void> {
    const url = await this.#startStore()
    this.#backend = this.#child('the backend', 'backend', undefined)
    const { port: backendPort } = await this.#backend.ready
    const { kind } = this.choice
    // Several demos on one server must not share limits.
    const store = url === undefined || kind === 'ipc' ? undefined : { kind, url, namespace: `weir-demo-${randomUUID().slice(0, 8)}` }
    this.namespace = store?.namespace
    for (const framework of FRAMEWORKS) {
      const page = this.#withPage && framework === FRAMEWORKS[0]
      const config: GatewayConfig = { framework, backendPort, store, ...limits, page }
      const gateway: Gateway = {
        framework,
        about: framework,
        port: 0,
        snapshot: undefined,
        snapshotTime: 0,
        timing: undefined,
        baseline: undefined,
        states: [],
        child: this.#child(`the ${framework} gateway`, 'gateway', config, (message) => {
          if (message.type === 'demo:report') {
            gateway.snapshot = message.snapshot
            gateway.timing = message.timing
            gateway.snapshotTime = message.time
          } else if (message.type === 'demo:state') gateway.states.push(message)
        }),
      }
      this.gateways.push(gateway)
    }
    for (const gateway of this.gateways) {
      const { port, about, page } = await gateway.child.ready
      Object.assign(gateway, { port, about })
      this.page ??= page
    }
    await this.#meet(signal)
  }

  /** Kills Redis like a crash. */
  killRedis(): void {
    this.#keeper?.order('demo:kill')
  }

  restartRedis(): void {
    this.#keeper?.order('demo:start')
  }

  async stop(): Promise<void> {
    this.commands?.stop()
    // The gateways stop first, because they still send their last counts to the store and a report to the parent.
    await Promise.all(this.gateways.map(({ child }) => child.stop()))
    await Promise.all([this.#backend?.stop(), this.#keeper?.stop()])
    this.#ipc?.close()
  }

  async #startStore(): Promise<string | undefined> {
    if (this.choice.kind === 'ipc') {
      this.#ipc = serveIpc()
      this.storeText = 'ipcStore: the demo’s own process, no server'
      return undefined
    }
    if (this.choice.kind !== 'redis') return this.#startServer(this.choice)
    let url: string
    if (this.choice.origin === 'REDIS_URL') {
      url = this.choice.url
      this.storeText = `Redis at ${shownUrl(url)} (REDIS_URL)`
    } else {
      this.#keeper = this.#child('redis-server', 'redis-keeper', this.choice.program)
      const { port, about } = await this.#keeper.ready
      url = `redis://127.0.0.1:${port}`
      this.storeText = `Redis, a private ${about} on port ${port}`
    }
    this.url = url
    this.commands = new CommandCount(url)
    await this.commands.start(url)
    return url
  }

  async #startServer(choice: Extract<StoreChoice, { kind: ServerKind }>): Promise<string | undefined> {
    const name = { postgres: 'PostgreSQL', etcd: 'etcd' }[choice.kind]
    if (choice.origin !== 'private') {
      this.storeText = `${name} at ${shownUrl(choice.url)} (${choice.origin})`
      return choice.url
    }
    this.#keeper = this.#child(name, 'server-keeper', choice.kind)
    const { port, about, url } = await this.#keeper.ready
    this.storeText = `a private ${about} on port ${port}`
    return url
  }

  async #meet(signal: AbortSignal): Promise<void> {
    const deadline = Date.now() + MEET_DEADLINE
    while (
      !signal.aborted &&
      !this.gateways.every(({ snapshot }) => snapshot?.state === 'synced' && snapshot.nodes >= this.gateways.length)
    ) {
      if (this.lost.length > 0) throw new DemoError(this.lost.join('. '))
      if (Date.now() > deadline) {
        const states = this.gateways.map(
          ({ about, snapshot }) =>
            `${about}: ${snapshot?.state ?? 'silent'}, ${snapshot?.nodes ?? 0} processes${snapshot?.sync.lastError ? `, ${snapshot.sync.lastError}` : ''}`,
        )
        throw new DemoError(`the gateways did not see each other within ${MEET_DEADLINE / 1000} s (${states.join('; ')})`)
      }
      await sleep(20, signal)
    }
  }

  #child(name: string, script: string, argument: unknown, onMessage: (message: FromChild) => void = () => {}): Child {
    return new Child(name, script, argument ?? null, onMessage, (reason) => this.lost.push(reason))
  }
}
