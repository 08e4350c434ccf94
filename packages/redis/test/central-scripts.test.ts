import { type Algorithm, fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, systemClock, tokenBucket } from '@weir/core'
import {
  CALENDAR_STEP,
  changeBy,
  type Decide,
  type DecidedPolicy,
  type Decider,
  type OpenReservation,
  type Question,
  type StoreConnection,
  takeBy,
  type Verdict,
} from '@weir/core/sync'
import { RedisServer } from '@weir/tooling/redis-servers'
import { type ClusterSetup, startCluster } from '@weir/tooling/redis-topologies'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ServerAlgorithm } from '../src/central/algorithms/server-algorithm.ts'
import { ALGORITHMS } from '../src/central/all.ts'
import { takesScript } from '../src/central/scripts.ts'
import { redisStore } from '../src/index.ts'
import type { RedisTarget } from '../src/ioredis/template.ts'
import { documentedUser, freshNamespace, PATIENT } from './fixtures.ts'

/**
 * Compares each script with its model: the step, and the open reservations of a key. Both get the same requests in sequence. Some requests
 * are repeated as if their reply had been lost, and some come after the server lost all scripts.
 */

const INTERVAL = 1_000_000
/** The unit in which keys' lives are shortened, in milliseconds. */
const LIFE_STEP = INTERVAL / 100
const SUBJECTS: readonly { readonly algorithm: Algorithm; readonly by?: 'ttl' }[] = [
  { algorithm: fixedWindow() },
  // One interval that contains the whole run. The process sends its bounds.
  {
    algorithm: {
      ...fixedWindow(),
      name: 'fixedWindow() in intervals of a calendar',
      step: { ...CALENDAR_STEP, parameters: () => [1_900_000_000_000, 1_700_000_000_000] },
    },
  },
  // Its window is the remaining life of its key, so time passes by shortening that.
  { algorithm: fixedWindow({ start: 'first-request' }), by: 'ttl' },
  { algorithm: slidingWindow({ subWindows: 6 }) },
  { algorithm: slidingCounter() },
  { algorithm: slidingLog() },
  { algorithm: tokenBucket() },
  { algorithm: tokenBucket({ burst: 3 }) },
  { algorithm: tokenBucket({ burst: 4, warmUp: INTERVAL }) },
  { algorithm: leakyBucket({ burst: 5, immediate: 2 }) },
]

interface Act {
  /** `open` is for units that are counted already, and `cancel` a refund of a reservation. */
  readonly kind: 'take' | 'look' | 'add' | 'give-back' | 'reset' | 'open' | 'use' | 'settle' | 'cancel'
  readonly key: number
  readonly units: number
  readonly limit: number
  /** The part of an interval that passes before it. */
  readonly pass: number
  /** Whether the clock goes back by `pass` instead, if the algorithm supports that. */
  readonly back: boolean
  readonly twice: boolean
  readonly forget: boolean
  /** The part of an interval after which the reservation ends that a take or an add opens. */
  readonly ttl: number | undefined
  /** Whether its units return at the end. */
  readonly refunds: boolean
  /** Which of the newest reservations it is about. */
  readonly newest: number
}

const units = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 }), fc.double({ min: 0.01, max: 12, noNaN: true }))
/** A part of an interval. Most floating-point numbers of fast-check are near 0. */
const part = (min: number, max: number) => fc.noBias(fc.integer({ min: 1000 * min, max: 1000 * max })).map((one) => one / 1000)
const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('take' as const) },
    fc.constantFrom('look', 'add', 'give-back', 'reset', 'open') as fc.Arbitrary<Act['kind']>,
    { weight: 3, arbitrary: fc.constantFrom('use', 'use', 'settle', 'cancel') as fc.Arbitrary<Act['kind']> },
  ),
  key: fc.integer({ min: 0, max: 1 }),
  units,
  limit: fc.constantFrom(10, 10, 10, 10, 7.5, 15, 40, 0, Number.POSITIVE_INFINITY),
  pass: fc.oneof(fc.constant(0), part(0, 0.3), part(0, 0.3), part(0, 3)),
  back: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
  twice: fc.boolean(),
  forget: fc.integer({ min: 0, max: 19 }).map((one) => one === 0),
  ttl: fc.option(fc.oneof(part(0.01, 0.4), part(0.01, 2)), { nil: undefined }),
  refunds: fc.boolean(),
  newest: fc.integer({ min: 0, max: 2 }),
})

let server: RedisServer
let cluster: ClusterSetup
/** A connection to each server with keys. */
let clients: readonly Redis[]
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([RedisServer.start(), startCluster()])
  clients = [server, ...cluster.servers.slice(0, 3)].map(({ port }) => new Redis({ port }))
}, 60_000)
afterAll(async () => {
  for (const client of clients) client.disconnect()
  await Promise.all([server.stop(), cluster.stop()])
})

const places: readonly (readonly [name: string, target: () => RedisTarget, runs: number])[] = [
  ['a server', () => server.url, 60],
  ['a Cluster', () => ({ cluster: cluster.servers.map(({ port }) => ({ host: '127.0.0.1', port })) }), 15],
  ['a server that grants what the README says', () => ({ port: server.port, username: 'weir', password: 'secret' }), 15],
]

for (const [place, target, runs] of places) {
  describe(`scripts of ${place} do what their steps do`, () => {
    for (const { algorithm, by } of SUBJECTS) {
      test(algorithm.name, async () => {
        const namespace = freshNamespace()
        await server.command('acl', 'setuser', ...documentedUser(namespace))
        const node = await connected(target(), namespace)
        let run = 0
        try {
          await fc.assert(
            fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 25 }), async (acts) => {
              const lives = by === 'ttl' ? new Lives(place, namespace) : undefined
              await new Both(algorithm, node.decider, `run${++run}`, lives, run % 3 > 0).run(acts)
            }),
            // Shrinking a case takes hundreds of runs on a real server, and its failure may depend on the moment.
            { numRuns: runs, endOnFailure: true },
          )
        } finally {
          await node.connection.close()
        }
      }, 180_000)
    }
  })
}

async function connected(target: RedisTarget, namespace: string): Promise<{ connection: StoreConnection; decider: Decider }> {
  const connection = redisStore(target, { ...PATIENT, namespace }).open({
    id: `node-${namespace}`,
    clock: systemClock,
    announced: () => {},
  })
  await connection.sync({ entries: [], blocks: [] })
  const decider = await (connection.decider as () => Promise<Decider>)()
  return { connection, decider }
}

/** Shortens the lives of keys. */
class Lives {
  readonly #clients: readonly Redis[]
  readonly #namespace: string

  constructor(place: string, namespace: string) {
    this.#clients = place === 'a Cluster' ? clients.slice(1) : clients.slice(0, 1)
    this.#namespace = namespace
  }

  async pass(milliseconds: number): Promise<void> {
    if (milliseconds < 1) return
    for (const client of this.#clients) {
      for (const key of await client.keys(`${this.#namespace}:*:d:*`)) {
        const left = (await client.pttl(key)) - milliseconds
        await (left > 0 ? client.pexpire(key, Math.round(left)) : client.del(key))
      }
    }
  }
}

function isPaced({ step }: DecidedPolicy): boolean {
  return (step as Required<Algorithm>['step']).paced === true
}

/** Numbers of an open reservation in the state of a key, and the places of two of them. */
const NUMBERS = 5
const AT = 2
const DUE = 4

/**
 * Settles the model's reservations whose end has passed, and moves times of a log that are in the future. Scripts do both for looks and
 * rejected requests too.
 */
function settleDue(question: Question, state: number[], now: number): void {
  changeBy({ ...question, kind: 'use', reservation: { id: -1, end: 0, units: 0, due: 0 } }, state, now)
  const { policy, key, limit } = question
  if (policy.step.id === 'sliding-log') changeBy({ policy, key, limit, kind: 'give-back', units: 0, at: now }, state, now)
}

/** A look that shows all units, even beyond the usual limit. */
const ALL: Omit<Act, 'key' | 'pass'> = {
  kind: 'look',
  units: 0,
  limit: 1000,
  back: false,
  twice: false,
  forget: false,
  ttl: undefined,
  refunds: false,
  newest: 0,
}

/** A server with the model for comparison. */
class Both {
  readonly #policy: DecidedPolicy
  readonly #decider: Decider
  readonly #lives: Lives | undefined
  readonly #reserves: boolean
  readonly #states: number[][] = [[], []]
  readonly #taken: { at: number; units: number }[][] = [[], []]
  readonly #opened: { at: number; reservation: OpenReservation }[][] = [[], []]
  #now = 1_800_000_000_000
  #sequence = 0

  constructor(algorithm: Algorithm, decider: Decider, id: string, lives: Lives | undefined, reserves: boolean) {
    const step = (algorithm as Required<Algorithm>).step
    const policy = { name: id, id, limit: 10, interval: INTERVAL } as Parameters<typeof step.parameters>[0]
    this.#policy = { id, step, parameters: step.parameters(policy) }
    this.#decider = decider
    this.#lives = lives
    this.#reserves = reserves
  }

  async run(acts: readonly Act[]): Promise<void> {
    for (const one of acts) await this.#act(one)
    for (const key of [0, 1]) await this.#act({ ...ALL, key, pass: 0.4 })
  }

  async #act(act: Act): Promise<void> {
    const { kind, key, pass, back: goesBack, twice, forget } = act
    // A life ends with a step, not shortly after one, because the server's own time continues, by seconds on a busy machine.
    const apart = this.#lives === undefined ? 1 : LIFE_STEP
    const passed = apart * Math.round((pass * INTERVAL) / apart)
    // Steps that use the server's clock must support that it is set back. Scripts then settle reservations for good that the model, which
    // stores nothing for looks and rejected requests, opens again.
    const mayGoBack = this.#lives === undefined && this.#policy.step.width === undefined && !this.#reserves
    this.#now += goesBack && mayGoBack ? -passed : passed
    await this.#lives?.pass(passed)
    if (forget) await Promise.all(clients.map((client) => client.script('FLUSH')))
    const question = this.#questionOf(act)
    if (question === undefined) return
    const { units: cost, limit, reservation } = question
    const state = this.#states[key] as number[]
    const request: Decide = { sequence: ++this.#sequence, time: this.#now, stepped: true, questions: [question] }
    const [told] = (await this.#decider.decide(request)) as [Verdict]
    let model: Verdict | undefined
    this.#endWindows(state)
    settleDue(question, state, this.#now)
    if (question.kind === 'take') model = takeBy(question, state, this.#now)
    else if (question.kind === 'reset') state.length = 0
    else changeBy(question, state, this.#now)
    this.#endWindows(state)
    if (model !== undefined) agree(told, model, limit)
    if (question.kind === 'take' && told.allowed && cost > 0) (this.#taken[key] as object[]).push({ at: this.#now, units: cost })
    if (reservation !== undefined && (kind === 'take' || kind === 'add' || kind === 'open')) {
      this.#opened[key]?.push({ at: this.#now, reservation })
    }
    // Looks and resets leave no trace, and a rejected request is decided again.
    if (!twice || kind === 'reset' || (model !== undefined && (cost === 0 || !model.allowed))) return
    const [again] = (await this.#decider.decide({ ...request, again: true })) as [Verdict]
    expect(again.allowed).toBe(true)
    if (model !== undefined) expect(again.remaining).toBeCloseTo(model.remaining, 6)
    if (model === undefined) await this.#act({ ...ALL, key, pass: 0 })
  }

  #questionOf({ kind, key, units, limit: most, ttl, refunds, newest }: Act): Question | undefined {
    // Requests without a limit fill a bucket beyond its size. The step of a bucket doesn't refund the units beyond.
    const limit = most === Number.POSITIVE_INFINITY && isPaced(this.#policy) && this.#policy.parameters[1] !== -1 ? 40 : most
    // Reservations have whole units.
    const whole = Math.ceil(units)
    // A bucket needs to compare the limit with the usual one.
    const parameters = [...this.#policy.parameters, ...(isPaced(this.#policy) && limit !== 10 ? [10] : [])]
    const question = { policy: { ...this.#policy, parameters }, key: `key ${key}`, limit, at: this.#now }
    if (kind === 'look' || kind === 'reset') return { ...question, kind: kind === 'look' ? 'take' : kind, units: 0 }
    if (kind === 'take' || kind === 'add' || kind === 'open') {
      if (kind !== 'open' && (ttl === undefined || !this.#reserves)) return { ...question, kind, units }
      if (!this.#reserves) return undefined
      const reservation = { id: ++this.#sequence, end: this.#endOf(ttl ?? 0.1), units: whole, due: refunds ? 0 : whole }
      return { ...question, kind: kind === 'take' ? kind : 'add', units: kind === 'open' ? 0 : whole, reservation }
    }
    if (kind === 'give-back') {
      const back = this.#taken[key]?.pop()
      return back && { ...question, kind, units: Math.min(units, back.units), at: back.at }
    }
    const one = this.#opened[key]?.at(-1 - newest)
    // Later than this, no process asks about it.
    if (one === undefined || this.#now - one.at >= INTERVAL) return undefined
    const { at, reservation } = one
    return { ...question, kind: kind === 'cancel' ? 'give-back' : kind, units: whole, at, reservation }
  }

  #endOf(ttl: number): number {
    const end = this.#now + Math.ceil(ttl * INTERVAL)
    const { id } = this.#policy.step
    return id === 'fixed-window' ? Math.min(end, (Math.floor(this.#now / INTERVAL) + 1) * INTERVAL) : end
  }

  /** In a server, reservations end with the key of their window. So they charge nothing to a later one. */
  #endWindows(state: number[]): void {
    const { id } = this.#policy.step
    const [open = 0] = state
    if (id === 'fixed-window-first-request') {
      const [units, start] = state.slice(1 + NUMBERS * open)
      if (open > 0 && (units === undefined || this.#now - (start as number) >= INTERVAL)) state.splice(0, 1 + NUMBERS * open, 0)
      return
    }
    const keys = id === 'fixed-window' ? 1 : id === 'sliding-counter' ? 2 : Number.POSITIVE_INFINITY
    for (let place = 1; place < 1 + NUMBERS * open; place += NUMBERS) {
      if (this.#now < (Math.floor((state[place + AT] as number) / INTERVAL) + keys) * INTERVAL) continue
      state[place + DUE] = Math.min(state[place + DUE] as number, state[place + DUE - 1] as number)
    }
  }
}

/** Takes of several keys at once. */
interface Several {
  readonly units: readonly number[]
  readonly pass: number
  readonly twice: boolean
  /** The part of an interval after which the reservations end that it opens. */
  readonly ttl: number | undefined
}

const several: fc.Arbitrary<Several> = fc.record({
  units: fc.array(units, { minLength: SUBJECTS.length, maxLength: SUBJECTS.length }),
  pass: fc.double({ min: 0, max: 0.5, noNaN: true }),
  twice: fc.boolean(),
  ttl: fc.option(fc.double({ min: 0.01, max: 0.9, noNaN: true }), { nil: undefined }),
})

const servers = places.filter(([place]) => place !== 'a Cluster')

test.each(servers)(
  'takes of all algorithms in one call: all count, or none: %s',
  async (_, target) => {
    const namespace = freshNamespace()
    await server.command('acl', 'setuser', ...documentedUser(namespace))
    const { connection, decider } = await connected(target(), namespace)
    // Windows from the first request are left out, because their time passes only on the server.
    const steps = SUBJECTS.filter(({ by }) => by === undefined).map(({ algorithm }) => (algorithm as Required<Algorithm>).step)
    let run = 0
    let rejected = 0
    let counted = 0
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(several, { minLength: 1, maxLength: 12 }), async (list) => {
          run++
          const policies = steps.map((step, i): DecidedPolicy => {
            const policy = { name: `${i}`, id: `all${run}.${i}`, limit: 20, interval: INTERVAL } as Parameters<typeof step.parameters>[0]
            return { id: policy.id, step, parameters: step.parameters(policy) }
          })
          const states: number[][] = policies.map(() => [])
          let now = 1_800_000_000_000
          for (const [sequence, { units: costs, pass, twice, ttl }] of list.entries()) {
            now += Math.round(pass * INTERVAL)
            const questions = policies.map((policy, i): Question => {
              const cost = costs[i] as number
              const reservation = { id: 1000 * sequence + i, end: now + INTERVAL * (ttl ?? 0), units: cost, due: 0 }
              return { policy, key: 'key', kind: 'take', units: cost, limit: 20, at: now, ...(ttl !== undefined && { reservation }) }
            })
            const request: Decide = { sequence: sequence + 1, time: now, stepped: true, questions }
            for (const [i, question] of questions.entries()) settleDue(question, states[i] as number[], now)
            const after = states.map((state) => [...state])
            const models = questions.map((question, i) => takeBy(question, after[i] as number[], now))
            const told = (await decider.decide(request)) as readonly Verdict[]
            for (const [i, model] of models.entries()) agree(told[i] as Verdict, model, 20)
            if (!models.every(({ allowed }) => allowed)) {
              rejected++
              continue
            }
            counted++
            for (const [i, state] of after.entries()) states[i] = state
            const again = twice ? ((await decider.decide({ ...request, again: true })) as readonly Verdict[]) : []
            for (const [i, { allowed, remaining }] of again.entries()) {
              expect(allowed).toBe(true)
              expect(remaining).toBeCloseTo((models[i] as Verdict).remaining, 6)
            }
          }
        }),
        { numRuns: 60 },
      )
    } finally {
      await connection.close()
    }
    expect(rejected).toBeGreaterThan(20)
    expect(counted).toBeGreaterThan(20)
  },
  60_000,
)

/** Milliseconds by which a server's clock advances during a test, and by which it rounds. */
const LATE = 2_000

function agree(told: Verdict, model: Verdict, limit: number): void {
  expect(told.allowed).toBe(model.allowed)
  if (limit === Number.POSITIVE_INFINITY) expect(told.remaining).toBe(model.remaining)
  else expect(told.remaining).toBeCloseTo(model.remaining, 6)
  for (const time of ['resetAfterMs', 'retryAfterMs', 'delayMs'] as const) {
    if (Number.isFinite(model[time])) expect(Math.abs(told[time] - model[time]), time).toBeLessThanOrEqual(LATE)
    else expect(told[time]).toBe(model[time])
  }
}

test('scripts of ever new combinations of algorithms are forgotten, and made again', () => {
  const ids = Object.keys(ALGORITHMS)
  const combination = (number: number) =>
    takesScript(
      Array.from({ length: 4 }, (_, place) => {
        const id = ids[Math.floor(number / ids.length ** place) % ids.length] as string
        return { id, algorithm: ALGORITHMS[id] as ServerAlgorithm, keys: 1, opens: false }
      }),
    )
  const first = combination(0)
  expect(combination(0)).toBe(first)
  for (let i = 1; i < 1_000; i++) combination(i)
  expect(combination(0)).not.toBe(first)
  expect(combination(0)).toEqual(first)
})
