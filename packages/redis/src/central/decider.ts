import type { Clock } from '@weir/core'
import { type Decide, type DecidedPolicy, type Decider, laneOf, type Question, type Verdict } from '@weir/core/sync'
import type { Link } from '../connection/link.ts'
import type { Keys } from '../keys/keys.ts'
import { isForgotten, type Script } from '../scripts/script.ts'
import { reservationArgs, type ServerAlgorithm } from './algorithms/server-algorithm.ts'
import { ALGORITHMS } from './all.ts'
import { changeScript, takeScript, takesScript } from './scripts.ts'

/** Milliseconds for which the process is kept alive after the last reply, because each change of that costs time. */
const HOLD = 100

/** A policy in requests for decisions. */
interface Known {
  readonly id: string
  readonly algorithm: ServerAlgorithm
  /** Its name in keys. */
  readonly name: string
  readonly take: Script
}

const DONE: readonly Verdict[] = Object.freeze([
  Object.freeze({ allowed: true, remaining: 0, resetAfterMs: 0, retryAfterMs: 0, delayMs: 0 }),
])

/** Sends requests for decisions to Redis: one command each. */
export class RedisDecider implements Decider {
  readonly #link: Link
  readonly #keys: Keys
  readonly #clock: Clock
  readonly #node: string
  readonly #known = new WeakMap<DecidedPolicy, Known>()
  /** Changes whose scripts were sent with their text, by shard, because each shard may be on another server. */
  readonly #sent = new Set<string>()
  #inFlight = 0
  #held = false
  #releasing = false

  constructor(link: Link, keys: Keys, clock: Clock, nodeId: string) {
    this.#link = link
    this.#keys = keys
    this.#clock = clock
    this.#node = `@${nodeId}`
  }

  partOf(key: string): number {
    return this.#keys.placeOf(key)
  }

  decide(request: Decide): Promise<readonly Verdict[] | undefined> {
    return this.#link.ready ? this.#ask(request) : this.#askOnceConnected(request)
  }

  async #askOnceConnected(request: Decide): Promise<readonly Verdict[] | undefined> {
    if (!(await this.#link.connected())) throw new Error('Redis is not connected.')
    return this.#ask(request)
  }

  #ask(request: Decide): Promise<readonly Verdict[] | undefined> {
    const { questions, again } = request
    const [question] = questions as [Question]
    if (question.kind !== 'take') return this.#change(question, request)
    return questions.length > 1 || again === true ? this.#takes(request) : this.#take(question, request)
  }

  #take(question: Question, request: Decide): Promise<readonly Verdict[] | undefined> {
    const { policy, units, limit, reservation } = question
    const { id, algorithm, take, name } = this.#knownOf(policy)
    const args: string[] = []
    this.#addKeys(algorithm, name, question, request, args)
    const keys = args.length
    args.push(laneOf(this.#node, request), String(request.sequence), limitText(limit))
    algorithm.args(question, request, args)
    if (units !== 1 || reservation !== undefined) args.push(String(units))
    reservationArgs(question, args)
    const script = reservation === undefined ? take : takeScript(id, algorithm, true)
    return this.#call(request, script, keys, args, (reply) => [algorithm.read(reply, question, request.time)])
  }

  #takes(request: Decide): Promise<readonly Verdict[] | undefined> {
    const { questions, sequence, time, again } = request
    const args: string[] = []
    const all = questions.map((question) => {
      const { id, algorithm, name } = this.#knownOf(question.policy)
      const before = args.length
      this.#addKeys(algorithm, name, question, request, args)
      return { id, algorithm, question, keys: args.length - before, opens: question.reservation !== undefined }
    })
    const keys = args.length
    args.push(laneOf(this.#node, request), String(sequence), again === true ? 'a' : '')
    for (const { algorithm, question } of all) addArgs(algorithm, question, request, args)
    return this.#call(request, takesScript(all), keys, args, (reply) => {
      const [before, replies] = reply as readonly [unknown, readonly unknown[]]
      return all.map(({ algorithm, question }, i) => {
        if (before !== 1) return algorithm.read(replies[i], question, time)
        return { ...algorithm.read(replies[i], { ...question, units: 0 }, time), allowed: true, retryAfterMs: 0 }
      })
    })
  }

  #change(question: Question, request: Decide): Promise<readonly Verdict[] | undefined> {
    const { sequence, again, of } = request
    const { id, algorithm, name } = this.#knownOf(question.policy)
    const args: string[] = []
    this.#addKeys(algorithm, name, question, request, args)
    const keys = args.length
    args.push(laneOf(this.#node, request), String(sequence), again === true ? 'a' : '', of === undefined ? '' : String(of))
    addArgs(algorithm, question, request, args)
    const script = changeScript(id, question.kind as 'add', algorithm, question.reservation !== undefined)
    // A call that fails because the server lacks its script would run after the request that follows it. So the text is sent the first
    // time.
    const place = `${this.#keys.placeOf(question.key)} ${script.sha}`
    const whole = question.kind === 'reset' || !this.#sent.has(place)
    this.#sent.add(place)
    return this.#call(request, script, keys, args, () => DONE, whole)
  }

  /**
   * Runs a script, and keeps the process alive meanwhile. It creates few promises, because each costs much of the time of the rest here.
   *
   * @param whole whether the script's text is sent even if the server has it
   * @returns undefined if the server answers, but can't use the key's content
   */
  #call(
    request: Decide,
    script: Script,
    keys: number,
    args: readonly string[],
    read: (reply: unknown) => readonly Verdict[],
    whole = false,
  ): Promise<readonly Verdict[] | undefined> {
    this.#hold()
    return (whole ? this.#link.send(script, keys, args) : this.#link.call(script, keys, args)).then(
      (reply) => {
        this.#release()
        return readable(reply, read)
      },
      async (error: unknown) => {
        try {
          if (isForgotten(error)) return readable(await this.#link.send(script, keys, args), read)
          return await this.#sendAgain(request, args[0] as string, error)
        } catch (failure) {
          if (!isOfKey(failure)) throw failure
          return undefined
        } finally {
          this.#release()
        }
      },
    )
  }

  /** Sends a request again if a good connection was lost and replaced at once. Otherwise its outcome is unknown. */
  async #sendAgain(request: Decide, key: string, error: unknown): Promise<readonly Verdict[] | undefined> {
    // At most once, because the request itself may be why the server closes the connection.
    if (request.again === true || !(await this.#link.replaced(key))) throw error
    return await this.#ask({ ...request, again: true })
  }

  #knownOf(policy: DecidedPolicy): Known {
    let known = this.#known.get(policy)
    if (known === undefined) {
      const { id } = policy.step
      const algorithm = ALGORITHMS[id] as ServerAlgorithm
      known = { id, algorithm, name: this.#keys.escaped(policy.id), take: takeScript(id, algorithm) }
      this.#known.set(policy, known)
    }
    return known
  }

  #addKeys(algorithm: ServerAlgorithm, policy: string, question: Question, { time }: Decide, list: string[]): void {
    const name = this.#keys.decided(policy, question.key)
    if (algorithm.keys === undefined) list.push(name)
    else algorithm.keys(question, name, list, time)
  }

  #hold(): void {
    this.#inFlight++
    if (this.#held) return
    this.#held = true
    this.#link.hold()
  }

  #release(): void {
    if (--this.#inFlight > 0 || this.#releasing) return
    this.#releasing = true
    this.#clock.setTimeout(() => {
      this.#releasing = false
      if (this.#inFlight > 0) return
      this.#held = false
      this.#link.release()
    }, HOLD)
  }
}

function addArgs(algorithm: ServerAlgorithm, question: Question, request: Decide, list: string[]): void {
  list.push(String(question.units), limitText(question.limit))
  algorithm.args(question, request, list)
  reservationArgs(question, list)
}

function limitText(limit: number): string {
  return limit === Number.POSITIVE_INFINITY ? 'inf' : String(limit)
}

function readable<T>(reply: unknown, read: (reply: unknown) => T): T | undefined {
  try {
    return read(reply)
  } catch {
    return undefined
  }
}

/** Whether a script failed because of the key's content, and not because the server could not run it. */
function isOfKey(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { message } = error
  return /^WRONGTYPE|^ERR .*user_script/.test(message) && !/OOM|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|NOPERM|can't run/.test(message)
}
