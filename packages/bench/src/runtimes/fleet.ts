import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import type { ProgramOptions } from '../harness/compiled-programs.ts'
import { startProgram } from '../harness/programs.ts'
import { seeded } from '../harness/random.ts'
import type { FunctionAnswer, FunctionEvents, FunctionInput } from './function.ts'

export interface FleetOptions extends FunctionInput {
  readonly processes: number
  /** Requests, as a multiple of the limit. */
  readonly times: number
  /** The measured intervals. One interval before them is not measured. */
  readonly intervals: number
  /** Whether processes are stopped between their requests. */
  readonly frozen: boolean
  readonly seed?: number
  readonly program?: ProgramOptions
}

export interface FleetResult {
  /** Allowed and rejected requests of each measured interval. */
  readonly allowed: readonly number[]
  readonly rejected: readonly number[]
  /** Milliseconds from the end of the freeze to the answer, for each request. */
  readonly latencies: readonly number[]
  /** The errors of all `storeDown` events. */
  readonly storeDown: readonly string[]
  readonly syncFailed: number
}

/**
 * Sends requests to processes that are frozen (SIGSTOP) right after each response and continued right before their next request. Requests
 * are evenly distributed over each interval, so that 0.9 times the limit never exceeds it. Each one goes to a random free process.
 */
export async function runFleet(options: FleetOptions): Promise<FleetResult> {
  const { processes, times, limit, interval, intervals, frozen, seed = 1 } = options
  const random = seeded(seed)
  const functions: FrozenFunction[] = []
  try {
    functions.push(...(await Promise.all(Array.from({ length: processes }, () => FrozenFunction.start(options)))))
    // All processes handle a first request before the measurement, when their code is loaded and compiled.
    await Promise.all(functions.map((one) => one.request()))
    if (frozen) for (const one of functions) one.freeze()
    const first = Math.ceil((Date.now() + 100) / interval)
    const end = (first + 1 + intervals) * interval
    const gap = interval / (limit * times)
    const free = [...functions]
    const allowed = Array.from({ length: intervals }, () => 0)
    const rejected = Array.from({ length: intervals }, () => 0)
    const latencies: number[] = []
    const requests: Promise<void>[] = []
    const handle = async (one: FrozenFunction): Promise<void> => {
      const began = performance.now()
      if (frozen) one.thaw()
      const answer = await one.request()
      const took = performance.now() - began
      if (frozen) one.freeze()
      free.push(one)
      const at = Math.floor(answer.at / interval) - first - 1
      if (at < 0 || at >= intervals) return
      latencies.push(took)
      const counts = answer.allowed ? allowed : rejected
      counts[at] = (counts[at] as number) + 1
    }
    // The first request of an interval comes half a gap after its start, so that a late one stays in its interval.
    for (let due = first * interval + gap / 2; due < end; due += gap) {
      await until(due)
      while (free.length === 0) await until(Date.now() + 1)
      const [one] = free.splice(Math.floor(random() * free.length), 1) as [FrozenFunction]
      requests.push(handle(one))
    }
    await Promise.all(requests)
    if (frozen) for (const one of functions) one.thaw()
    const events = await Promise.all(functions.map((one) => one.events()))
    return {
      allowed,
      rejected,
      latencies,
      storeDown: events.flatMap(({ storeDown }) => storeDown),
      syncFailed: events.reduce((sum, { syncFailed }) => sum + syncFailed, 0),
    }
  } finally {
    for (const one of functions) one.end()
  }
}

const until = (moment: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, moment - Date.now()))

/** A process that can be frozen. */
export class FrozenFunction {
  readonly #child: ChildProcess
  readonly #port: number
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.#port = port
  }

  static async start({ program, ...input }: FunctionInput & Pick<FleetOptions, 'program'>): Promise<FrozenFunction> {
    const child = await startProgram('runtimes/function', input satisfies FunctionInput, program)
    const [text] = (await Promise.race([once(child.stdout as NodeJS.ReadableStream, 'data'), ended(child)])) as [Buffer]
    return new FrozenFunction(child, Number(text))
  }

  request(): Promise<FunctionAnswer> {
    return this.#get('/')
  }

  events(): Promise<FunctionEvents> {
    return this.#get('/events')
  }

  freeze(): void {
    this.#child.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child.kill('SIGCONT')
  }

  end(): void {
    this.#agent.destroy()
    this.#child.kill('SIGKILL')
  }

  #get<Answer>(path: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port: this.#port, path, agent: this.#agent }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part
        })
        response.on('end', () => resolve(JSON.parse(text) as Answer))
      }).on('error', reject)
    })
  }
}

async function ended(child: ChildProcess): Promise<never> {
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  throw new Error(`The program runtimes/function ended with ${code ?? signal}.`)
}
