import assert from 'node:assert/strict'
import { type Algorithm, fixedWindow, leakyBucket, type Step, slidingCounter, slidingLog, slidingWindow, tokenBucket } from '@weir/core'
import type { Decide, DecidedPolicy, Decider, Question, Verdict } from '@weir/core/sync'
import type { ContractCase } from './case.ts'
import { type ContractContext, type ContractNode, defined } from './context.ts'
import { HOSTILE_KEYS } from './counts.ts'

/** An interval so long that a window almost never ends during a case. */
const INTERVAL = 3_600_000
export const LIMIT = 10

const ALGORITHMS: readonly Algorithm[] = [
  fixedWindow(),
  fixedWindow({ start: 'first-request' }),
  slidingWindow(),
  slidingCounter(),
  slidingLog(),
  tokenBucket(),
  tokenBucket({ warmUp: 3 * INTERVAL }),
  leakyBucket({ burst: LIMIT - 1, immediate: LIMIT - 1 }),
]

/** A process that sends requests to the store's decider. */
export class Asking {
  readonly #decider: Decider
  readonly #now: () => number
  #sequence = 0

  constructor(decider: Decider, now: () => number) {
    this.#decider = decider
    this.#now = now
  }

  static async of(context: ContractContext, node: ContractNode): Promise<Asking> {
    const decider = await defined(node.connection.decider?.bind(node.connection))()
    return new Asking(decider, () => context.clock.now())
  }

  /** Makes a request without sending it. */
  request(questions: readonly Question[], more: Partial<Decide> = {}): Decide {
    return { sequence: ++this.#sequence, time: this.#now(), questions, ...more }
  }

  question(policy: DecidedPolicy, key: string, units: number, kind: Question['kind'] = 'take', limit: number = LIMIT): Question {
    return { policy, key, kind, units, limit, at: this.#now() }
  }

  async send(request: Decide): Promise<readonly Verdict[]> {
    return defined(await this.#decider.decide(request))
  }

  async take(policy: DecidedPolicy, key: string, units: number, limit?: number): Promise<Verdict> {
    return defined((await this.send(this.request([this.question(policy, key, units, 'take', limit)])))[0])
  }

  async tell(kind: 'add' | 'give-back' | 'reset', policy: DecidedPolicy, key: string, units: number): Promise<void> {
    await this.send(this.request([this.question(policy, key, units, kind)]))
  }
}

/**
 * The time at which units were taken, as a process reports it: the cell's time, a little earlier, or a little later if it must not
 * be before a window's start.
 */
export function takenAt({ policy: { step, parameters }, at }: Question): number {
  if (step.width?.(parameters) !== undefined) return at
  return at + (step.sinceStart === true ? 5_000 : -5_000)
}

let made = 0

function decided(algorithm: Algorithm, limit: number = LIMIT): DecidedPolicy {
  const step = defined(algorithm.step)
  const id = `decided-${++made}`
  return { id, step, parameters: step.parameters({ name: id, id, limit, interval: INTERVAL } as Parameters<typeof step.parameters>[0]) }
}

/** Runs a check for each algorithm, with two processes that decide by a policy of their own. */
export async function eachDecided(
  context: ContractContext,
  run: (policy: DecidedPolicy, a: Asking, b: Asking, name: string) => Promise<void>,
): Promise<void> {
  const nodes = await context.nodes(2)
  // The first sync connects.
  await Promise.all(nodes.map((node) => context.eventually(() => node.sync({}))))
  const [a, b] = await Promise.all(nodes.map((node) => Asking.of(context, node)))
  for (const algorithm of ALGORITHMS) await run(decided(algorithm), defined(a), defined(b), algorithm.name)
}

/** Stores that decide single requests. */
export const decisionCases: readonly ContractCase[] = [
  {
    title: 'decides about requests of all nodes by one count, exactly, and rejections take nothing',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, b, name) => {
        const ask = (one: Asking, lane: number) => one.send(one.request([one.question(policy, 'k', 1)], { lane }))
        const verdicts = await Promise.all(Array.from({ length: 15 }, (_, i) => ask(i % 2 === 0 ? a : b, i)))
        const warm = verdicts.filter(([verdict]) => verdict?.allowed === true).length
        assert.ok(name === 'tokenBucket()' ? warm >= 1 && warm <= LIMIT : warm === LIMIT, `${name} allows ${warm}`)
        const rejected = await b.take(policy, 'k', LIMIT)
        assert.equal(rejected.allowed, false)
        assert.ok(rejected.retryAfterMs > 0 && rejected.retryAfterMs <= 40 * INTERVAL, `${name}: retry after ${rejected.retryAfterMs}`)
        assert.equal((await a.take(policy, 'k', LIMIT + 1)).retryAfterMs, Number.POSITIVE_INFINITY)
        assert.equal((await a.take(policy, 'another', 1)).allowed, true)
      })
    },
  },
  {
    title: 'a request that follows a refund, a charge or a reset of the same node is decided after it, although it waits for no answer',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, _b, name) => {
        for (const [kind, fits] of [
          ['give-back', true],
          ['reset', true],
          ['add', false],
        ] as const) {
          const at = a.question(policy, kind, 1)
          for (let units = 0; units < LIMIT && kind !== 'add'; units++) await a.take(policy, kind, 1)
          const [, [verdict]] = await Promise.all([
            a.send(a.request([{ ...a.question(policy, kind, LIMIT, kind), at: takenAt(at) }])),
            a.send(a.request([a.question(policy, kind, 1)], { lane: 1 })),
          ])
          assert.equal(defined(verdict).allowed, fits, `${name}: a take after ${kind}`)
        }
      })
    },
  },
  {
    title: 'a request that is asked again counts once, also one that gives back or charges',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, b, name) => {
        const left = async () => (await b.take(policy, 'k', 0)).remaining
        const question = a.question(policy, 'k', 1)
        const take = a.request([question])
        const [first] = await a.send(take)
        const [again] = await a.send({ ...take, again: true })
        assert.deepEqual([first?.allowed, again?.allowed], [true, true])
        const before = await left()
        const add = a.request([a.question(policy, 'k', 1, 'add')])
        await a.send(add)
        const after = await left()
        assert.ok(before - after > 0.9, `${name}: a charge of 1 leaves ${after} of ${before}`)
        await a.send({ ...add, again: true })
        assert.ok(Math.abs((await left()) - after) < 0.1, name)
        const at = takenAt(question)
        const back = a.request([{ ...question, kind: 'give-back', at }])
        await a.send(back)
        const then = await left()
        assert.ok(then - after > 0.9, `${name}: a refund of 1 leaves ${then} of ${after}`)
        await a.send({ ...back, again: true })
        assert.ok(Math.abs((await left()) - then) < 0.1, name)
      })
    },
  },
  {
    title: 'what a request without an answer took is given back only if it took anything',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, b, name) => {
        if (name === 'tokenBucket()' && policy.parameters.length === 4) return
        await b.take(policy, 'k', 5)
        const question = a.question(policy, 'k', 2)
        const at = takenAt(question)
        const lost = a.request([question])
        const back = (of: number) => a.send(a.request([{ ...question, kind: 'give-back', at }], { of, again: true }))
        await back(lost.sequence)
        assert.ok(Math.abs((await b.take(policy, 'k', 0)).remaining - 5) < 0.1, name)
        const heard = a.request([a.question(policy, 'k', 2)])
        await a.send(heard)
        await back(heard.sequence)
        assert.ok(Math.abs((await b.take(policy, 'k', 0)).remaining - 5) < 0.1, name)
      })
    },
  },
  {
    title: 'a request that arrives after it was asked again counts nothing more',
    needs: ['decisions'],
    async run(context) {
      const policies: DecidedPolicy[] = []
      await eachDecided(context, async (policy, a, b, name) => {
        if (name === 'tokenBucket()' && policy.parameters.length === 4) return
        const left = async (of: DecidedPolicy, key: string) => (await b.take(of, key, 0)).remaining
        const question = a.question(policy, 'k', 2)
        for (const kind of ['take', 'add'] as const) {
          const late = a.request([{ ...question, kind }])
          await a.send({ ...late, questions: [{ ...question, kind: 'add' }], again: true })
          const before = await left(policy, 'k')
          const [answer] = await a.send(late)
          assert.equal(answer?.allowed, true)
          assert.ok(Math.abs((await left(policy, 'k')) - before) < 0.1, `${name}: ${kind} counted twice`)
        }
        const back = a.request([{ ...question, kind: 'give-back', at: takenAt(question) }])
        await a.send({ ...back, again: true })
        const before = await left(policy, 'k')
        await a.send(back)
        assert.ok(Math.abs((await left(policy, 'k')) - before) < 0.1, `${name}: given back twice`)
        // After a request for several keys, the process repeats each key alone, while the others may still be in flight.
        policies.push(policy)
        if (policies.length < 2) return
        const all = policies.slice(-2).map((one) => a.question(one, 'together', 2))
        const [first, second] = all as [Question, Question]
        const late = a.request(all)
        await a.send({ ...late, questions: [{ ...first, kind: 'add' }], again: true })
        await a.send(late)
        await a.send({ ...late, questions: [{ ...second, kind: 'add' }], again: true })
        for (const { policy: one } of all) assert.ok(Math.abs((await left(one, 'together')) - (LIMIT - 2)) < 0.1, `${name}: together`)
        for (const { policy: one } of all) await b.tell('reset', one, 'together', 0)
      })
    },
  },
  {
    title: 'of requests of several lanes each is known again, whichever came first',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, b, name) => {
        if (name === 'tokenBucket()' && policy.parameters.length === 4) return
        const left = async () => (await b.take(policy, 'k', 0)).remaining
        const question = a.question(policy, 'k', 1)
        const add = { ...question, kind: 'add' } as const
        const heard = [0, 1, 2].map((lane) => a.request([question], { lane }))
        const lost = [3, 4].map((lane) => a.request([question], { lane })) as [Decide, Decide]
        // Other requests overtake the lost ones.
        const overtaking = a.request([question], { lane: 5 })
        await Promise.all([...heard, overtaking].map((request) => a.send(request)))
        for (const request of [...heard, overtaking]) await a.send({ ...request, questions: [add], again: true })
        assert.ok(Math.abs((await left()) - 6) < 0.1, `${name}: ${await left()} are left of ${LIMIT} after 4`)
        for (let i = 0; i < 2; i++) await a.send({ ...lost[0], questions: [add], again: true })
        assert.ok(Math.abs((await left()) - 5) < 0.1, `${name}: ${await left()} are left of ${LIMIT} after 5`)
        const back = { ...question, kind: 'give-back', at: takenAt(question) } as const
        await a.send(a.request([back], { of: lost[1].sequence, lane: 4, again: true }))
        assert.ok(Math.abs((await left()) - 5) < 0.1, `${name}: what was never counted came back`)
        await a.send(a.request([back], { of: overtaking.sequence, lane: 5, again: true }))
        assert.ok(Math.abs((await left()) - 6) < 0.1, `${name}: what was counted did not come back`)
      })
    },
  },
  {
    title: 'a reset begins a key anew; looks change nothing; a limit of a request is its own',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, b, name) => {
        await a.take(policy, 'k', 8)
        await b.tell('reset', policy, 'k', 0)
        assert.equal((await a.take(policy, 'k', 0)).remaining, LIMIT, name)
        await b.take(policy, 'k', 3)
        assert.equal((await a.take(policy, 'k', 1, 0)).allowed, false)
        assert.equal((await a.take(policy, 'k', 1, Number.POSITIVE_INFINITY)).allowed, true)
      })
    },
  },
  {
    title: 'a limit that a single request brings makes no room in a bucket for others',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, b, name) => {
        if ((policy.step as Step).paced !== true) return
        const usual: DecidedPolicy = { ...policy, parameters: [...policy.parameters, LIMIT] }
        await a.take(policy, 'k', LIMIT)
        for (const limit of [Number.POSITIVE_INFINITY, 1_000 * LIMIT, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]) {
          const { allowed } = await b.take(usual, 'k', 1, limit)
          // The size of a leaky bucket is its burst, for any limit.
          assert.ok(allowed || limit < Number.POSITIVE_INFINITY, `${name}: a limit of ${limit}`)
          const rejected = await a.take(policy, 'k', 1)
          assert.equal(rejected.allowed, false, `${name}: after one with a limit of ${limit}`)
        }
        // If all requests carry their own limit, the bucket drains by it.
        for (let i = 0; i < 2; i++) await b.take(usual, 'own', LIMIT, 2 * LIMIT)
        const rejected = await a.take(usual, 'own', LIMIT, 2 * LIMIT)
        // A cold key's first units cost 8/3 as much, so the second ones did not fit.
        const lacking = policy.parameters.length === 4 ? (8 / 3) * LIMIT - LIMIT : LIMIT
        assert.ok(
          !rejected.allowed && Math.abs((rejected.retryAfterMs * 2 * LIMIT) / INTERVAL - lacking) < 0.5,
          `${name}: ${rejected.retryAfterMs}`,
        )
      })
    },
  },
  {
    title: 'several policies of one part count all, or none',
    needs: ['decisions'],
    async run(context) {
      const policies: DecidedPolicy[] = []
      await eachDecided(context, async (policy, a, b) => {
        policies.push(policy)
        if (policies.length < 2) return
        const [one, two] = policies.slice(-2) as [DecidedPolicy, DecidedPolicy]
        await b.take(two, 'together', LIMIT)
        const all = (units: number) => [one, two].map((each) => a.question(each, 'together', units))
        const [first, second] = await a.send(a.request(all(1)))
        assert.deepEqual([first?.allowed, second?.allowed], [true, false])
        assert.equal((await b.take(one, 'together', 0)).remaining, LIMIT)
        await b.tell('reset', two, 'together', 0)
        assert.ok((await a.send(a.request(all(1)))).every(({ allowed }) => allowed))
        await b.tell('reset', one, 'together', 0)
        await b.tell('reset', two, 'together', 0)
      })
    },
  },
  {
    title: 'units of a bucket that are counted ahead, by a question that says what it may hold, stand in one count with all others',
    needs: ['decisions'],
    async run(context) {
      await eachDecided(context, async (policy, a, b, name) => {
        const ahead = policy.step.id === 'bucket' ? (policy.step as Step).ahead : undefined
        if (ahead === undefined) return
        const of = (most: number): DecidedPolicy => ({ ...policy, parameters: ahead(policy.parameters, most) })
        await b.take(policy, 'k', 4)
        const asked = a.question(of(30), 'k', 20)
        const request = a.request([asked])
        const [first] = await a.send(request)
        // The level is 24 of 10 units per interval, less the units that have drained meanwhile.
        const level = ((first?.resetAfterMs ?? 0) * LIMIT) / INTERVAL
        assert.ok(first?.allowed === true && level > 23.8 && level <= 24, `${name}: ${level}`)
        await a.send({ ...request, again: true })
        const late = await b.take(of(30), 'k', 7)
        assert.equal(late.allowed, false)
        assert.ok(Math.abs((late.resetAfterMs * LIMIT) / INTERVAL - level) < 0.2, name)
        const rejected = await b.take(policy, 'k', 1)
        assert.ok(!rejected.allowed && Math.abs((rejected.retryAfterMs * LIMIT) / INTERVAL - (level - LIMIT + 1)) < 0.2, name)
        await a.send(a.request([{ ...asked, units: 15, kind: 'give-back' }]))
        assert.ok(Math.abs((await b.take(policy, 'k', 0)).remaining - (LIMIT - level + 15)) < 0.2, name)
      })
    },
  },
  {
    title: 'keys that are asked about are data: none is taken for another',
    needs: ['decisions'],
    async run(context) {
      const [node] = await context.nodes(1)
      await context.eventually(() => defined(node).sync({}))
      const asking = await Asking.of(context, defined(node))
      const policy = decided(fixedWindow())
      const keys = [...HOSTILE_KEYS]
      for (const [i, key] of keys.entries())
        assert.ok(Math.abs((await asking.take(policy, key, 1 + i / 100)).remaining - (LIMIT - 1 - i / 100)) < 1e-9, JSON.stringify(key))
    },
  },
]
