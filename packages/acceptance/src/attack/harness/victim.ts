import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Given, StartOptions } from './given.ts'

/** The longest time in milliseconds until a process has started or has answered a question. */
const PATIENCE = 30_000

/** An answer of the attacked process. */
interface Message {
  readonly asked: number
  readonly value?: unknown
  readonly error?: string
}

/** An attacked process, as the attacker sees it. */
export class Victim {
  readonly #child: ChildProcess
  readonly #answers = new Map<number, (message: Omit<Message, 'asked'>) => void>()
  #asked = 0
  #ended: string | undefined
  #output = ''
  port = 0

  private constructor(child: ChildProcess) {
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        if (this.#output.length < 1e6) this.#output += text
      })
    }
    child.on('message', (message: Message) => this.#answers.get(message.asked)?.(message))
    child.once('exit', (code, signal) => {
      this.#ended = `ended with ${signal ?? code}`
      for (const answer of [...this.#answers.values()]) answer({ error: this.#ended })
    })
  }

  /** @param program the file that `makeProject` made */
  static async start(program: string, attack: string, given: Given, { heap, env }: StartOptions = {}): Promise<Victim> {
    const child = fork(program, [attack, JSON.stringify(given)], {
      execArgv: ['--expose-gc', '--no-warnings=ExperimentalWarning', ...(heap === undefined ? [] : [`--max-old-space-size=${heap}`])],
      env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const victim = new Victim(child)
    const ready = await victim.#wait<{ readonly port?: number }>(0)
    victim.port = ready.port ?? 0
    return victim
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Whether the process still runs. */
  get up(): boolean {
    return this.#ended === undefined
  }

  /** How it ended, with the first line of its output that shows the reason. */
  get ended(): string {
    const why = this.#output.match(/^.*(Error|FATAL|\[WEIR_|reason ").*$/m)?.[0]?.trim() ?? ''
    return this.#ended === undefined ? 'up' : `${this.#ended} ${why.slice(0, 90)}`.trim()
  }

  /** The text that it wrote to both streams. */
  get output(): string {
    return this.#output
  }

  /** Sends a question to the `answer` that the attack's `victim` returned. Fails if the process ends or does not answer in time. */
  async ask<Result>(question: unknown, patience: number = PATIENCE): Promise<Result> {
    if (!this.up) throw new Error(this.ended)
    const asked = ++this.#asked
    this.#child.send({ asked, question }, () => {})
    return this.#wait<Result>(asked, patience)
  }

  /** Ends the process if it still runs. */
  async kill(): Promise<void> {
    if (!this.up) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }

  #wait<Result>(asked: number, patience: number = PATIENCE): Promise<Result> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle({ error: `no answer within ${patience} ms` }), patience)
      const settle = ({ value, error }: Omit<Message, 'asked'>): void => {
        clearTimeout(timer)
        this.#answers.delete(asked)
        if (error === undefined) resolve(value as Result)
        else reject(new Error(`${error}\n${this.#output.slice(-2000)}`))
      }
      this.#answers.set(asked, settle)
    })
  }
}
