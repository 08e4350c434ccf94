import assert from 'node:assert/strict'
import { type Algorithm, algorithms, fixedWindow, leakyBucket, type PolicyOptions, slidingLog, tokenBucket } from '@weir/core'
import { type AdapterCase, type AdapterClient, type AdapterContext, type Answer, eventually } from './context.ts'

/** An algorithm with the options that a case passes to the adapter. */
interface Row {
  readonly name: string
  readonly algorithm: Algorithm
  /** The burst that clients receive in `RateLimit-Policy`, for a limit of 6. */
  readonly burst?: number
  /** Set if the bucket warms up: the units of a cold key cost up to three times as much, so fewer fit. */
  readonly warms?: true
}

/** Algorithms that are tried with options. All others are tried with their defaults. */
const WITH_OPTIONS: Readonly<Record<string, readonly Row[]>> = {
  fixedWindow: [
    { name: 'fixedWindow()', algorithm: fixedWindow() },
    { name: "fixedWindow({ start: 'first-request' })", algorithm: fixedWindow({ start: 'first-request' }) },
  ],
  tokenBucket: [
    { name: 'tokenBucket()', algorithm: tokenBucket(), burst: 6 },
    { name: 'tokenBucket({ warmUp })', algorithm: tokenBucket({ warmUp: '60d' }), burst: 6, warms: true },
  ],
  leakyBucket: [{ name: 'leakyBucket()', algorithm: leakyBucket({ burst: 5, immediate: 5 }), burst: 5 }],
}

/** All algorithms with an interval. */
const ROWS: readonly Row[] = Object.entries(algorithms).flatMap(([name, make]) => {
  const algorithm = make()
  return algorithm.slots === undefined ? (WITH_OPTIONS[name] ?? [{ name: algorithm.name, algorithm }]) : []
})

/** The limit of all cases. An unused key has as many units left. */
const MOST = 6
/** Units that a bucket may drain or refill while a case runs, because its interval is a year. */
const NEARLY = 0.01
/** Seconds of an hour. A busy machine may need up to ten of them before it answers. */
const AN_HOUR = /^3(600|59\d)$/

type Rule = PolicyOptions<never> & { readonly limit: number }

function rule(context: AdapterContext, algorithm: Algorithm, more: object = {}): Rule {
  return { name: 'user', ...context.limit(MOST), key: 'all', algorithm, coordination: 'local', ...more }
}

/** The remaining quota of the key that all requests share. */
function left({ throttlers }: AdapterClient): number {
  return throttlers[0]?.peek('all').remaining ?? Number.NaN
}

/** Sends requests until one is rejected. Returns how many were allowed, and the rejection. */
async function fill(client: AdapterClient): Promise<{ allowed: number; rejected: Answer }> {
  for (let allowed = 0; allowed < 20; allowed++) {
    const answer = await client.send('/')
    if (answer.status === 429) return { allowed, rejected: answer }
  }
  throw new Error('No request was rejected.')
}

function casesOf({ name, algorithm, burst, warms }: Row): AdapterCase[] {
  const full = Math.ceil(MOST / (warms === undefined ? 1 : 3))
  return [
    {
      title: `tells limit, window and burst of ${name}, and allows what it tells`,
      async run(context) {
        const client = await context.start(rule(context, algorithm))
        const { headers } = await client.send('/')
        assert.equal(headers['ratelimit-policy'], `"user";q=6;w=31536000${burst === undefined ? '' : `;weir-burst=${burst}`}`)
        assert.match(String(headers['ratelimit']), warms === undefined ? /^"user";r=5;t=\d+$/ : /^"user";r=[345];t=\d+$/)
        const { allowed, rejected } = await fill(client)
        assert.ok(warms === undefined ? allowed === MOST - 1 : allowed >= 1 && allowed < MOST - 1, `${allowed} more were allowed`)
        assert.match(String(rejected.headers['ratelimit']), /^"user";r=0;t=\d+$/)
        assert.deepEqual(JSON.parse(rejected.body)['violated-policies'], ['user'])
      },
    },
    {
      title: `refunds, charges and resets with ${name}; a block is a block`,
      async run(context) {
        const client = await context.start(rule(context, algorithm, { skipFailedRequests: true }))
        const throttler = client.throttlers[0]
        const about = (units: number) => Math.abs(left(client) - units) < NEARLY
        await client.send('/status/500')
        await eventually(() => about(MOST), 'a failed request is refunded')
        await client.send('/')
        const after = left(client)
        assert.ok(warms === undefined ? about(MOST - 1) : after < MOST - 1 && after > MOST - 3 - NEARLY, `${after} are left`)
        await client.send('/bytes/2')
        await eventually(() => (warms === undefined ? about(after - 3) : left(client) < after - 3 + NEARLY), 'its bytes are charged')
        throttler?.block('all', '1h')
        const blocked = await client.send('/')
        assert.equal(blocked.status, 429)
        assert.match(blocked.headers['retry-after'] ?? '', AN_HOUR)
        throttler?.unblock('all')
        throttler?.reset('all')
        assert.ok(about(MOST), `${left(client)} are left after a reset`)
        assert.equal((await client.send('/')).status, 200)
      },
    },
    {
      title: `keeps the counts of ${name} over another limit and cooldown, and the block over any other rule`,
      async run(context) {
        const client = await context.start(rule(context, algorithm))
        const throttler = client.throttlers[0]
        const update = (algorithmNow: Algorithm, more: object) => throttler?.update([rule(context, algorithmNow, more) as PolicyOptions])
        await client.statuses(['/', '/'])
        const used = MOST - left(client)
        update(algorithm, { limit: 8, cooldown: '1h' })
        const most = algorithm.most?.(8) ?? 8
        assert.ok(Math.abs(left(client) - (most - used)) < NEARLY, `${left(client)} of ${most} are left, ${used} were used`)
        throttler?.block('all', '1h')
        const interval = context.limit(1).interval / 2
        update(algorithm, { interval })
        assert.match((await client.send('/')).headers['retry-after'] ?? '', AN_HOUR)
        throttler?.unblock('all')
        assert.ok(Math.abs(left(client) - MOST) < NEARLY, 'another interval starts from zero')
        await client.statuses(['/', '/'])
        throttler?.block('all', '1h')
        update(name.startsWith('slidingLog') ? fixedWindow() : slidingLog(), { interval })
        assert.equal((await client.send('/')).status, 429)
        throttler?.unblock('all')
        assert.ok(Math.abs(left(client) - MOST) < NEARLY, 'another algorithm starts from zero')
      },
    },
    {
      title: `rejects nobody in a dry run of ${name}, and tells whom it would have rejected`,
      async run(context) {
        const throttled: unknown[] = []
        const onRejected = (_: unknown, decision: unknown) => throttled.push(decision)
        const client = await context.start(rule(context, algorithm, { dryRun: true, onRejected }))
        const answers: Answer[] = []
        for (let i = 0; i < MOST + 3; i++) answers.push(await client.send('/'))
        assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
        assert.ok(answers.every(({ headers }) => headers['retry-after'] === undefined))
        assert.ok(warms === undefined ? throttled.length === 3 : throttled.length >= 3 && throttled.length <= 3 + MOST - full)
      },
    },
    {
      title: `tells by ${name} in Retry-After the first second in which a request is allowed`,
      needs: 'clock',
      async run(context) {
        const client = await context.start({ ...rule(context, algorithm), interval: '100s' })
        await fill(client)
        for (let turn = 0; turn < 3; turn++) {
          await context.pass(7_000 * turn)
          if (left(client) >= 1) await fill(client)
          const wait = Number((await client.send('/')).headers['retry-after'])
          // Decisions round times up to whole milliseconds, including errors of clocks. So a request may fit up to 2 ms early.
          const early = Math.max(0, (wait - 1) * 1_000 - 2)
          await context.pass(early)
          assert.equal(client.throttlers[0]?.peek('all').allowed, false, `allowed more than a second before its time of ${wait} s`)
          await context.pass(wait * 1_000 - early)
          assert.equal((await client.send('/')).status, 200, `rejected after ${wait} s`)
          await fill(client)
        }
      },
    },
  ]
}

/** The behaviour of an adapter with each algorithm, in one process. */
export const algorithmCases: readonly AdapterCase[] = [
  ...ROWS.flatMap(casesOf),
  {
    title: 'has levels of all algorithms on one request: what one rejects costs nothing at the others',
    async run(context) {
      const policies = ROWS.map(({ name, algorithm }) => ({ ...rule(context, algorithm), name }))
      const tight = { ...rule(context, slidingLog()), name: 'tight', limit: 1 }
      const client = await context.start({ policies: [...policies, tight] })
      const first = await client.send('/')
      assert.equal(first.status, 200)
      const items = ROWS.map(({ name, burst }) => `"${name}";q=6;w=31536000${burst === undefined ? '' : `;weir-burst=${burst}`}`)
      assert.equal(first.headers['ratelimit-policy'], [...items, '"tight";q=1;w=31536000'].join(', '))
      const second = await client.send('/')
      assert.equal(second.status, 429)
      assert.deepEqual(JSON.parse(second.body)['violated-policies'], ['tight'])
      const amounts = (answer: Answer) => String(answer.headers['ratelimit']).match(/r=\d+/g)
      assert.deepEqual(amounts(second), amounts(first))
      assert.deepEqual(
        amounts(first)?.filter((_, place) => ROWS[place]?.warms === undefined),
        [...Array(ROWS.length - 1).fill('r=5'), 'r=0'],
      )
    },
  },
]
