import { type Algorithm, fixedWindow, leakyBucket, slidingCounter, slidingLog, slidingWindow, systemClock, tokenBucket } from '@weir/core'
import {
  CALENDAR_STEP,
  type Decide,
  type DecidedPolicy,
  type Decider,
  type Question,
  type StoreConnection,
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
 * Compares each script with the step that is its model. Both get the same requests in sequence. Some requests are repeated as if their
 * reply had been lost, and some come after the server lost all scripts.
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
  readonly kind: 'take' | 'look' | 'add' | 'give-back' | 'reset'
  readonly key: number
  readonly units: number
  readonly limit: number
  /** The part of an interval that passes before it. */
  readonly pass: number
  /** Whether the clock goes back by `pass` instead, if the algorithm supports that. */
  readonly back: boolean
  readonly twice: boolean
  readonly forget: boolean
}

const units = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 }), fc.double({ min: 0.01, max: 12, noNaN: true }))
const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('take' as const) },
    fc.constantFrom('look', 'add', 'give-back', 'reset') as fc.Arbitrary<Act['kind']>,
  ),
  key: fc.integer({ min: 0, max: 1 }),
  units,
  limit: fc.constantFrom(10, 10, 10, 10, 7.5, 15, 40, 0, Number.POSITIVE_INFINITY),
  pass: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.3, noNaN: true }), fc.double({ min: 0, max: 3, noNaN: true })),
  back: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
  twice: fc.boolean(),
  forget: fc.integer({ min: 0, max: 19 }).map((one) => one === 0),
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
              await new Both(algorithm, node.decider, `run${++run}`, by === 'ttl' ? new Lives(place, namespace) : undefined).run(acts)
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

/** A server with the model for comparison. */
class Both {
  readonly #policy: DecidedPolicy
  readonly #decider: Decider
  readonly #lives: Lives | undefined
  readonly #states: number[][] = [[], []]
  readonly #taken: { at: number; units: number }[][] = [[], []]
  #now = 1_800_000_000_000
  #sequence = 0

  constructor(algorithm: Algorithm, decider: Decider, id: string, lives: Lives | undefined) {
    const step = (algorithm as Required<Algorithm>).step
    const policy = { name: id, id, limit: 10, interval: INTERVAL } as Parameters<typeof step.parameters>[0]
    this.#policy = { id, step, parameters: step.parameters(policy) }
    this.#decider = decider
    this.#lives = lives
  }

  async run(acts: readonly Act[]): Promise<void> {
    for (const one of acts) await this.#act(one)
  }

  async #act({ kind, key, units, limit, pass, back: goesBack, twice, forget }: Act): Promise<void> {
    // A life ends with a step, not shortly after one, because the server's own time continues, by seconds on a busy machine.
    const apart = this.#lives === undefined ? 1 : LIFE_STEP
    const passed = apart * Math.round((pass * INTERVAL) / apart)
    // Steps that use the server's clock must support that it is set back.
    const mayGoBack = this.#lives === undefined && this.#policy.step.width === undefined
    this.#now += goesBack && mayGoBack ? -passed : passed
    await this.#lives?.pass(passed)
    if (forget) await Promise.all(clients.map((client) => client.script('FLUSH')))
    const { step } = this.#policy
    // A bucket needs to compare the limit with the usual one.
    const parameters = [...this.#policy.parameters, ...(isPaced(this.#policy) && limit !== 10 ? [10] : [])]
    const state = this.#states[key] as number[]
    const taken = this.#taken[key] as { at: number; units: number }[]
    const back = kind === 'give-back' ? taken.pop() : undefined
    if (kind === 'give-back' && back === undefined) return
    const cost = kind === 'look' || kind === 'reset' ? 0 : back === undefined ? units : Math.min(units, back.units)
    const at = back?.at ?? this.#now
    const question: Question = {
      policy: { ...this.#policy, parameters },
      key: `key ${key}`,
      kind: kind === 'look' ? 'take' : kind,
      units: cost,
      limit,
      at,
    }
    const request: Decide = { sequence: ++this.#sequence, time: this.#now, stepped: true, questions: [question] }
    const [told] = (await this.#decider.decide(request)) as [Verdict]
    let model: Verdict | undefined
    if (question.kind === 'take') model = step.take(state, this.#now, cost, limit, parameters)
    else if (question.kind === 'add') step.add(state, this.#now, cost, limit, parameters)
    else if (question.kind === 'reset') state.length = 0
    else step.giveBack(state, at, cost, this.#now, limit, parameters)
    if (model !== undefined) agree(told, model, limit)
    if (question.kind === 'take' && told.allowed && cost > 0) taken.push({ at: this.#now, units: cost })
    // Looks and resets leave no trace, and a rejected request is decided again.
    if (!twice || cost === 0 || (model !== undefined && !model.allowed)) return
    const [again] = (await this.#decider.decide({ ...request, again: true })) as [Verdict]
    expect(again.allowed).toBe(true)
    if (model !== undefined) expect(again.remaining).toBeCloseTo(model.remaining, 6)
  }
}

/** Takes of several keys at once. */
interface Several {
  readonly units: readonly number[]
  readonly pass: number
  readonly twice: boolean
}

const several: fc.Arbitrary<Several> = fc.record({
  units: fc.array(units, { minLength: SUBJECTS.length, maxLength: SUBJECTS.length }),
  pass: fc.double({ min: 0, max: 0.5, noNaN: true }),
  twice: fc.boolean(),
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
          for (const [sequence, { units: costs, pass, twice }] of list.entries()) {
            now += Math.round(pass * INTERVAL)
            const questions = policies.map((policy, i): Question => {
              return { policy, key: 'key', kind: 'take', units: costs[i] as number, limit: 20, at: now }
            })
            const request: Decide = { sequence: sequence + 1, time: now, stepped: true, questions }
            const after = states.map((state) => [...state])
            const models = questions.map(({ policy, units: cost, limit }, i) =>
              policy.step.take(after[i] as number[], now, cost, limit, policy.parameters),
            )
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
        return { id, algorithm: ALGORITHMS[id] as ServerAlgorithm, keys: 1 }
      }),
    )
  const first = combination(0)
  expect(combination(0)).toBe(first)
  for (let i = 1; i < 1_000; i++) combination(i)
  expect(combination(0)).not.toBe(first)
  expect(combination(0)).toEqual(first)
})
