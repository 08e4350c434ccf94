import assert from 'node:assert/strict'
import { type AdapterCase, type AdapterClient, type AdapterContext, type Answer, eventually } from './context.ts'

/** The `callbackTimeout` of these cases, in milliseconds. */
const TIMEOUT = 50
const TEXT = 'by the function'
/** An error message with control characters, as an attacker would write it. */
const HOSTILE = 'boom\r\n\u001b[31mroot logged in\u202e\u2028'

/** An option that is a function, and how its result shows in three requests. */
interface Callback {
  readonly option: string
  /** Returns options that contain the function. */
  options(answer: (...args: unknown[]) => unknown, context: AdapterContext): object
  /** Returns a valid result of the function, which leads to the statuses in `rightly`. */
  right(args: readonly unknown[], context: AdapterContext): unknown
  /** The statuses of three requests after the valid result, and after the option's fallback. */
  readonly rightly: readonly number[]
  readonly fallback: readonly number[]
  /** An invalid result. Absent if every result is valid, or if the option ignores results. */
  readonly nonsense?: unknown
  /** Whether the last body is `TEXT` after a valid result. */
  readonly body?: boolean
  /** Whether requests wait for the function. */
  readonly waits: boolean
}

const uncounted = { rightly: [200, 200, 200], fallback: [200, 429, 429], waits: true }
const rejected = { rightly: [200, 429, 429], fallback: [200, 429, 429] }
let keys = 0

const callbacks: readonly Callback[] = [
  { option: 'enabled', options: (enabled) => ({ enabled }), right: () => false, nonsense: 'no', ...uncounted },
  { option: 'skip', options: (skip) => ({ skip }), right: () => true, nonsense: 'yes', ...uncounted },
  { option: 'allow', options: (allow) => ({ allow }), right: () => true, nonsense: 1, ...uncounted },
  { option: 'deny', options: (deny) => ({ deny }), right: () => true, nonsense: [], ...uncounted, rightly: [403, 403, 403] },
  { option: 'match', options: (match) => ({ match }), right: () => false, ...uncounted },
  { option: 'key', options: (key) => ({ key }), right: () => `key ${++keys}`, nonsense: {}, ...uncounted },
  {
    option: 'key of several',
    options: (key) => ({ key: ['ip', key, 'route', key] }),
    right: () => `key ${++keys}`,
    nonsense: {},
    ...uncounted,
  },
  {
    option: 'plan',
    options: (plan) => ({ limit: undefined, plans: { small: 1, large: 3 }, plan }),
    right: () => 'large',
    nonsense: 'golden',
    ...uncounted,
  },
  {
    option: 'cost',
    options: (cost) => ({ limit: 2, cost }),
    right: () => 2,
    nonsense: '2',
    rightly: [200, 429, 429],
    fallback: [200, 200, 429],
    waits: true,
  },
  {
    option: 'cost by name',
    options: (cost) => ({ name: 'units', limit: 2, cost }),
    right: () => ({ units: 2 }),
    nonsense: { unit: 2 },
    rightly: [200, 429, 429],
    fallback: [200, 200, 429],
    waits: true,
  },
  {
    option: 'estimate',
    options: (estimate) => ({ name: 'units', limit: 2, estimate }),
    right: () => ({ units: 2 }),
    nonsense: { unit: 2 },
    rightly: [200, 429, 429],
    fallback: [200, 200, 429],
    waits: true,
  },
  {
    option: 'limit',
    options: (limit) => ({ limit, fallbackLimit: 1 }),
    right: () => 3,
    nonsense: '3',
    ...uncounted,
  },
  {
    option: 'message',
    options: (message) => ({ message }),
    right: () => TEXT,
    nonsense: Symbol('no body'),
    body: true,
    waits: true,
    ...rejected,
  },
  {
    option: 'handler',
    options: (handler) => ({ handler }),
    right: (args, { adapter }) => (adapter.answering(TEXT) as (...given: unknown[]) => unknown)(...args),
    body: true,
    waits: true,
    ...rejected,
  },
  { option: 'onRejected', options: (onRejected) => ({ onRejected }), right: () => undefined, waits: false, ...rejected },
]

/**
 * A way in which a function returns or fails. Core's own tests try stranger ones. With `rightly` Weir must use the result.
 * Otherwise it must use the option's fallback and warn once.
 */
interface Way {
  readonly title: string
  readonly rightly?: true
  /** Whether time must pass before requests continue. */
  readonly late?: true
  answer(right: () => unknown, nonsense: unknown, later: (() => unknown)[]): unknown
}

const boom = () => new Error(HOSTILE)

const ways: readonly Way[] = [
  { title: 'answers', rightly: true, answer: (right) => right() },
  {
    title: 'resolves in a later turn',
    rightly: true,
    answer: (right) => new Promise((resolve) => setImmediate(() => resolve(right()))),
  },
  {
    title: 'answers by a foreign promise, which calls back twice',
    rightly: true,
    answer: (right) => ({
      // biome-ignore lint/suspicious/noThenProperty: this is what is tested
      then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
        resolve(right())
        reject(boom())
        resolve(Promise.reject(boom()))
        throw boom()
      },
    }),
  },
  {
    title: 'throws',
    answer: () => {
      throw boom()
    },
  },
  { title: 'rejects', answer: () => Promise.reject(boom()) },
  { title: 'never resolves', late: true, answer: () => new Promise(() => {}) },
  {
    title: 'resolves too late',
    late: true,
    answer: (right, _, later) => new Promise((resolve) => later.push(() => resolve(undefined))).then(right),
  },
  { title: 'answers nonsense', answer: (_, nonsense) => nonsense },
  { title: 'resolves to nonsense', answer: async (_, nonsense) => nonsense },
]

/** Fails if an error would end the process while `run` runs or soon after it. */
async function harmless(what: string, run: () => Promise<void>): Promise<void> {
  const caught: unknown[] = []
  const hear = (error: unknown) => void caught.push(error)
  process.on('unhandledRejection', hear).on('uncaughtException', hear)
  try {
    await run()
    // Node.js reports a rejection as unhandled at the end of a turn.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  } catch (error) {
    throw new Error(`${what}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  } finally {
    process.off('unhandledRejection', hear).off('uncaughtException', hear)
  }
  assert.deepEqual(caught, [], `${what}: it would end the process`)
}

/** Waits for a promise while time passes, so that requests that wait for a timeout continue. */
async function whileTimePasses<T>(context: AdapterContext, waiting: Promise<T>): Promise<T> {
  let over = false
  const settled = waiting.finally(() => {
    over = true
  })
  settled.catch(() => {})
  while (!over) {
    await context.pass(TIMEOUT)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return settled
}

/** Options of a policy that allows one request, with one option function. */
function optionsOf(context: AdapterContext, { options }: Callback, answer: (...args: unknown[]) => unknown): object {
  const given = { ...context.limit(1), key: 'all', callbackTimeout: TIMEOUT, ...options(answer, context) }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
}

function clean(client: AdapterClient, what: string): void {
  for (const { message } of client.warnings) {
    assert.doesNotMatch(message, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u, `${what}: the warning is not safe to print`)
    assert.ok(message.length < 600, `${what}: the warning is long`)
  }
}

async function tryWay(context: AdapterContext, callback: Callback, way: Way): Promise<void> {
  const what = `${callback.option} ${way.title}`
  const later: (() => unknown)[] = []
  await harmless(what, async () => {
    const client = await context.start(
      optionsOf(context, callback, (...args) => way.answer(() => callback.right(args, context), callback.nonsense, later)),
    )
    const answers: Answer[] = []
    for (let i = 0; i < 3; i++) {
      const answer = client.send('/')
      answers.push(await (way.late === true && callback.waits ? whileTimePasses(context, answer) : answer))
    }
    for (const now of later) now()
    const expected = way.rightly === true ? callback.rightly : callback.fallback
    assert.deepEqual(
      answers.map(({ status }) => status),
      expected,
      what,
    )
    const { body, headers } = answers[2] as Answer
    if (callback.body === true && way.rightly === true) assert.equal(body, TEXT, what)
    if (callback.body === true && way.rightly !== true) assert.match(body, /quota-exceeded/, what)
    if (expected[2] === 429) assert.match(String(headers['retry-after']), /^[1-9]\d*$/, what)
    if (way.rightly === true) assert.deepEqual(client.warnings, [], what)
    // No request waits for the other functions, so only their errors cause a warning.
    else if (callback.waits || ['throws', 'rejects'].includes(way.title))
      assert.equal(client.warnings.length, 1, `${what}: ${client.warnings.map(String)}`)
    clean(client, what)
  })
}

/** A function whose promise stays pending until `answer` is called. */
function held(): { called: Promise<unknown[]>; ask: (...args: unknown[]) => Promise<unknown>; answer: (value: unknown) => void } {
  let called!: (args: unknown[]) => void
  let answer!: (value: unknown) => void
  const wasCalled = new Promise<unknown[]>((resolve) => {
    called = resolve
  })
  const answered = new Promise<unknown>((resolve) => {
    answer = resolve
  })
  return {
    called: wasCalled,
    ask: (...args) => {
      called(args)
      return answered
    },
    answer,
  }
}

/** Requests whose option functions fail or answer later. */
export const callbackCases: readonly AdapterCase[] = [
  ...callbacks.map(
    (callback): AdapterCase => ({
      title: `goes on whatever becomes of ${callback.option}`,
      needs: 'clock',
      async run(context) {
        for (const way of ways) {
          if (way.title.endsWith('nonsense') && callback.nonsense === undefined) continue
          await tryWay(context, callback, way)
        }
      },
    }),
  ),
  ...callbacks
    .filter(({ waits }) => waits)
    .map(
      (callback): AdapterCase => ({
        title: `survives clients that are gone before ${callback.option} has answered`,
        needs: 'clock',
        async run(context) {
          await harmless(callback.option, async () => {
            const { called, ask, answer } = held()
            let first = true
            const client = await context.start(
              optionsOf(context, callback, (...args) => {
                if (!first) return callback.right(args, context)
                first = false
                return ask(...args)
              }),
            )
            // Weir makes the body only for a rejected request, so the limit must be used up first.
            if (callback.body === true) await client.send('/')
            const request = client.open('/')
            request.on('error', () => {})
            request.end()
            const args = await called
            request.destroy()
            await eventually(async () => (await client.connections()) === 0, 'the server knows that its client is gone')
            answer(callback.option === 'handler' ? undefined : callback.right(args, context))
            if (callback.option === 'handler') void callback.right(args, context)
            const statuses = await client.statuses(['/', '/'])
            assert.ok(
              statuses.every((status) => status === 200 || status === 429 || status === 403),
              String(statuses),
            )
            assert.deepEqual(client.warnings, [])
          })
        },
      }),
    ),
  {
    title: 'counts a request whose client is gone while it waits',
    needs: 'clock',
    async run(context) {
      const { called, ask, answer } = held()
      const client = await context.start({ ...context.limit(5), key: ask })
      const request = client.open('/')
      request.on('error', () => {})
      request.end()
      await called
      request.destroy()
      await eventually(async () => (await client.connections()) === 0, 'the server knows that its client is gone')
      answer('somebody')
      await eventually(() => client.throttlers[0]?.peek('somebody').remaining === 4, 'the request is counted')
    },
  },
  {
    title: 'tells requests apart that wait at the same time',
    needs: 'clock',
    async run(context) {
      const waiting: (() => void)[] = []
      const later = (header: string) => (request: unknown) =>
        new Promise((resolve) => waiting.push(() => resolve(context.readHeader(header)(request))))
      const client = await context.start({
        policies: [
          { name: 'user', ...context.limit(2), key: ['route', later('x-user')] },
          { name: 'all', ...context.limit(100), key: 'all', cost: (request: unknown) => later('x-cost')(request).then(Number) },
        ],
      })
      const send = (user: string, cost: number) => client.send('/context', { headers: { 'x-user': user, 'x-cost': String(cost) } })
      const sent = [send('ann', 5), send('bob', 7), send('ann', 11), send('ann', 13)]
      await eventually(() => waiting.length === 8, 'all requests wait')
      for (const now of waiting.reverse()) now()
      const statuses = (await Promise.all(sent)).map(({ status }) => status)
      assert.deepEqual([...statuses].sort(), [200, 200, 200, 429])
      assert.equal(statuses[1], 200)
      const used = [5, 7, 11, 13].reduce((sum, cost, i) => (statuses[i] === 200 ? sum + cost : sum), 0)
      const all = client.throttlers[0]?.peek('all').parts.find(({ policy }) => policy?.name === 'all')
      assert.equal(all?.remaining, 100 - used)
    },
  },
  {
    title: 'refunds by requestWasSuccessful only what it says, whatever becomes of it',
    needs: 'clock',
    async run(context) {
      for (const way of ways) {
        const later: (() => unknown)[] = []
        const what = `requestWasSuccessful ${way.title}`
        await harmless(what, async () => {
          for (const option of ['skipFailedRequests', 'skipSuccessfulRequests']) {
            const requestWasSuccessful = () => way.answer(() => option === 'skipSuccessfulRequests', 'nonsense', later)
            const client = await context.start({
              ...context.limit(9),
              key: 'all',
              callbackTimeout: TIMEOUT,
              [option]: true,
              requestWasSuccessful,
            })
            const left = () => client.throttlers[0]?.peek('all').remaining
            assert.equal((await client.send('/')).status, 200)
            if (way.rightly === true) await eventually(() => left() === 9, `${what}: the request is refunded`)
            else {
              await eventually(async () => {
                await context.pass(TIMEOUT)
                return client.warnings.length > 0
              }, `${what}: there is a warning`)
              for (const now of later) now()
              await new Promise((resolve) => setImmediate(resolve))
              assert.equal(left(), 8, what)
            }
            assert.equal(client.warnings.length, way.rightly === true ? 0 : 1, what)
            clean(client, what)
          }
        })
      }
    },
  },
  {
    title: 'settles by the real use or else in full, whatever becomes of settle',
    needs: 'clock',
    async run(context) {
      for (const way of ways) {
        const later: (() => unknown)[] = []
        const what = `settle ${way.title}`
        await harmless(what, async () => {
          const client = await context.start({
            ...context.limit(9),
            name: 'units',
            key: 'all',
            callbackTimeout: TIMEOUT,
            estimate: () => ({ units: 5 }),
            settle: () => way.answer(() => ({ units: 1 }), 'nonsense', later),
          })
          const left = () => client.throttlers[0]?.peek('all').remaining
          assert.equal((await client.send('/')).status, 200)
          if (way.rightly === true) await eventually(() => left() === 8, `${what}: the request is settled`)
          else {
            await eventually(async () => {
              await context.pass(TIMEOUT)
              return client.warnings.length > 0
            }, `${what}: there is a warning`)
            for (const now of later) now()
            await new Promise((resolve) => setImmediate(resolve))
            assert.equal(left(), 4, what)
          }
          assert.equal(client.warnings.length, way.rightly === true ? 0 : 1, what)
          clean(client, what)
        })
      }
    },
  },
  {
    title: 'goes on whatever becomes of listeners and of the logger',
    needs: 'clock',
    async run(context) {
      for (const way of ways) {
        await harmless(`a listener ${way.title}`, async () => {
          const answer = () => way.answer(() => undefined, 'nonsense', [])
          const client = await context.start({
            ...context.limit(1),
            key: 'all',
            cost: () => 'nothing',
            logger: { debug: answer, info: answer, warn: answer },
          })
          const heard: unknown[] = []
          for (const event of ['warning', 'blocked', 'unblocked'] as const) {
            client.throttlers[0]?.on(event, answer)
            client.throttlers[0]?.on(event, () => heard.push(event))
          }
          client.throttlers[0]?.block('somebody', '1m')
          client.throttlers[0]?.unblock('somebody')
          assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 429, 429])
          assert.deepEqual(heard, ['blocked', 'unblocked', 'warning'])
          await context.pass(2_000)
        })
      }
    },
  },
  {
    title: 'leaves an answer alone that a handler has begun, and breaks it off when the handler fails',
    needs: 'clock',
    async run(context) {
      const { begun } = context.adapter
      await harmless('handler', async () => {
        for (const fails of [false, true]) {
          const { called, ask, answer } = held()
          const client = await context.start({
            ...context.limit(1),
            callbackTimeout: TIMEOUT,
            handler: async (...args: unknown[]) => {
              begun(args, 'begun ')
              await ask()
              if (fails) throw boom()
              begun(args, 'and ended', true)
            },
          })
          assert.equal((await client.send('/')).status, 200)
          const sent = client.send('/').catch((error: Error) => error)
          await called
          if (!fails) for (let i = 0; i < 3; i++) await context.pass(TIMEOUT)
          answer(undefined)
          const said = await sent
          if (fails) assert.ok(said instanceof Error, 'the client sees that its answer is broken')
          else assert.equal((said as Answer).body, 'begun and ended')
          assert.equal(client.warnings.length, fails ? 1 : 0)
          assert.equal((await client.send('/nowhere')).status === 500, false)
        }
      })
    },
  },
]
