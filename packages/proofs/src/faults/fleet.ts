import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { until } from '@weir/tooling/redis-servers'
import { ADAPTERS, type Adapter, type Answer, booksInterval, type FromNode, type Order, type Rule, type StateChange } from './protocol.ts'

const SCRIPT = new URL('./node.ts', import.meta.url)
/** Milliseconds to start a process. A busy machine may take long, but a process that needs more time is broken. */
const START_DEADLINE = 90_000
const ANSWER_DEADLINE = 60_000

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export interface NodeOptions {
  /** More environment variables, for example for a shifted clock. */
  readonly env?: Readonly<Record<string, string>>
  /** Runs a worker thread of this process instead of a process. */
  readonly thread?: boolean
}

/** A process of the fleet, as its parent controls it. */
export class RemoteNode {
  readonly adapter: Adapter
  readonly states: StateChange[] = []
  port = 0
  /** The answer to orders after the process was killed or has ended by itself. */
  ended: string | undefined
  readonly #child: ChildProcess | undefined
  readonly #worker: Worker | undefined
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  readonly #ready: Promise<void>
  #complaint = ''
  #orders = 0

  private constructor(adapter: Adapter, { env, thread = false }: NodeOptions) {
    this.adapter = adapter
    if (thread) {
      // A thread can't get a loader by arguments.
      const source = `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then(({ register }) => {
        register()
        return import(${JSON.stringify(SCRIPT.href)})
      })`
      this.#worker = new Worker(source, {
        eval: true,
        workerData: adapter,
        execArgv: ['--conditions=@weir/source'],
      })
    } else {
      this.#child = fork(fileURLToPath(SCRIPT), [adapter], {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        execArgv: [...EXEC_ARGV, '--expose-gc'],
        env: { ...process.env, NODE_ENV: 'production', ...env },
      })
      running.add(this.#child)
      this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        this.#complaint = (this.#complaint + text).slice(-4000)
      })
    }
    const channel = (this.#child ?? this.#worker) as ChildProcess
    this.#ready = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`The ${adapter} node did not start in time. ${this.#complaint}`)), START_DEADLINE)
      channel.on('message', (message) => {
        clearTimeout(timer)
        this.#hear(message as FromNode, resolve)
      })
      channel.once('error', (error: Error) => reject(error))
      channel.once('exit', (code, signal) => {
        clearTimeout(timer)
        if (this.#child !== undefined) running.delete(this.#child)
        this.ended ??= `ended with ${signal ?? code}. ${this.#complaint}`
        reject(new Error(`The ${adapter} node ${this.ended}`))
        for (const [id, answer] of this.#waiting) answer({ type: 'answer', id, error: `The ${adapter} node ${this.ended}` })
      })
    })
    this.#ready.catch(() => {})
  }

  static async start(adapter: Adapter, options: NodeOptions = {}): Promise<RemoteNode> {
    const node = new RemoteNode(adapter, options)
    await node.#ready
    return node
  }

  async ask(order: Order): Promise<Answer> {
    const id = ++this.#orders
    const message = { ...order, id }
    const answer = await new Promise<Answer>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`The ${this.adapter} node did not answer ${order.type}.`)), ANSWER_DEADLINE)
      this.#waiting.set(id, (given) => {
        clearTimeout(timer)
        resolve(given)
      })
      if (this.ended !== undefined) reject(new Error(`The ${this.adapter} node ${this.ended}`))
      else if (this.#worker !== undefined) this.#worker.postMessage(message)
      else this.#child?.send(message, () => {})
    })
    this.#waiting.delete(id)
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer
  }

  /** Waits until the process is synced with the store. */
  async synced(patience = 20_000): Promise<void> {
    await until(
      async () => (await this.ask({ type: 'snapshot' })).snapshot?.state === 'synced',
      `the ${this.adapter} node is synced`,
      patience,
    )
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal)
  }

  /** Kills the process (−9). */
  async kill(): Promise<void> {
    if (this.ended !== undefined) return
    this.ended = 'was killed'
    if (this.#worker !== undefined) {
      await this.#worker.terminate()
      return
    }
    const child = this.#child as ChildProcess
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  #hear(message: FromNode, started: () => void): void {
    if (message.type === 'ready') {
      this.port = message.port
      started()
    } else if (message.type === 'state') this.states.push(message)
    else this.#waiting.get(message.id)?.(message)
  }
}

/** The sources run as they are, because a test runner that runs this process has other arguments. */
const EXEC_ARGV: readonly string[] = ['--conditions=@weir/source', '--import', import.meta.resolve('tsx')]

/** Starts `count` processes, with the adapters in turn. */
export async function startFleet(count = 3, options: readonly NodeOptions[] = []): Promise<RemoteNode[]> {
  return await Promise.all(
    Array.from({ length: count }, (_, i) =>
      RemoteNode.start(ADAPTERS[i % ADAPTERS.length] as Adapter, options[i % Math.max(1, options.length)]),
    ),
  )
}

/** Makes new throttlers in all processes. */
export async function renewAll(nodes: readonly RemoteNode[], rule: Rule): Promise<void> {
  const order = { type: 'renew', rule: { ...rule, books: booksInterval() } } as const
  await Promise.all(nodes.map((node) => node.ask(order)))
  for (const node of nodes) node.states.length = 0
}
