import { Agent, request } from 'node:http'
import { seeded } from '@weir/bench/random'
import type { RemoteNode } from './fleet.ts'
import { ARRIVED_HEADER, KEY_HEADER, monotonic, sleep } from './protocol.ts'

/** One request as its client measured it. Times are of the shared monotonic clock, in milliseconds. */
export interface Seen {
  readonly key: string
  readonly node: RemoteNode
  readonly sent: number
  readonly latency: number
  /** The time at which it reached its process. `undefined` if there was no answer. */
  readonly arrived: number | undefined
  /** The status. 0 if there was no answer. */
  readonly status: number
}

/** Requests per second of each key, over all processes. */
export type Rates = Readonly<Record<string, number>>

/** Clients that send at their own pace, whether or not answers come (open loop). Each request goes to a random process. */
export class Clients {
  readonly seen: Seen[] = []
  /** Processes that get requests. They may change at any time. */
  nodes: readonly RemoteNode[]
  readonly #rates: Rates
  readonly #random: () => number
  readonly #agents = new Map<RemoteNode, Agent>()
  #running = true
  #open = 0
  readonly #done: Promise<void>

  constructor(nodes: readonly RemoteNode[], rates: Rates, seed: number) {
    this.nodes = nodes
    this.#rates = rates
    this.#random = seeded(seed)
    this.#done = Promise.all(Object.keys(rates).map((key) => this.#drive(key))).then(() => {})
  }

  /** Ends the load. Resolves when all answers have arrived. */
  async stop(): Promise<void> {
    this.#running = false
    await this.#done
    // Every request has its own timeout.
    while (this.#open > 0) await sleep(5)
    for (const agent of this.#agents.values()) agent.destroy()
  }

  async #drive(key: string): Promise<void> {
    let due = monotonic()
    while (this.#running) {
      const now = monotonic()
      // After a pause of this process the load continues without catching up in one burst.
      if (now - due > 200) due = now
      while (due <= now) {
        this.#send(key)
        due += (-Math.log(1 - this.#random()) * 1000) / (this.#rates[key] as number)
      }
      await sleep(Math.min(20, due - monotonic()))
    }
  }

  #send(key: string): void {
    const node = this.nodes[Math.floor(this.#random() * this.nodes.length)]
    if (node === undefined) return
    const sent = monotonic()
    this.#open++
    const finish = (status: number, arrived: number | undefined): void => {
      this.#open--
      this.seen.push({ key, node, sent, latency: monotonic() - sent, arrived, status })
    }
    const asked = request(
      { host: '127.0.0.1', port: node.port, agent: this.#agentOf(node), headers: { [KEY_HEADER]: key }, timeout: 30_000 },
      (response) => {
        const arrived = Number(response.headers[ARRIVED_HEADER])
        let finished = false
        const once = (status: number): void => {
          if (finished) return
          finished = true
          finish(status, Number.isFinite(arrived) ? arrived : undefined)
        }
        response.on('end', () => once(response.statusCode ?? 0))
        response.on('close', () => once(0))
        response.resume()
      },
    )
    let answered = false
    asked.once('response', () => {
      answered = true
    })
    asked.on('timeout', () => asked.destroy(new Error('no answer')))
    asked.on('error', () => {
      if (answered) return
      answered = true
      finish(0, undefined)
    })
    asked.end()
  }

  #agentOf(node: RemoteNode): Agent {
    let agent = this.#agents.get(node)
    if (agent === undefined) this.#agents.set(node, (agent = new Agent({ keepAlive: true, maxSockets: 64 })))
    return agent
  }
}
