import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { fixedWindow, leakyBucket } from '@weir/core'
import { type AdapterCase, type AdapterClient, type Answer, eventually } from './context.ts'

/** Windows start with the first request, so that a case can compute their ends. */
const WINDOW = { key: 'all', interval: '10s', coordination: 'local', algorithm: fixedWindow({ start: 'first-request' }) } as const

/** Two requests in each window. Others wait for the next window. */
const WAITING = { ...WINDOW, name: 'wait', limit: 2, delay: '12s' } as const

/** Each request above the limit waits a second longer than the previous one. */
const SLOWED = { ...WINDOW, name: 'slow', limit: 1, delay: (over: number) => over * 1_000 } as const

function waits(client: AdapterClient, count: number): Promise<void> {
  return eventually(() => client.throttlers[0]?.waiting === count, `${count} are held`)
}

/** Sends requests that are delayed, one at a time so that the server receives them in this order. */
async function hold(client: AdapterClient, count: number, headers: Record<string, string> = {}): Promise<Promise<Answer>[]> {
  const before = client.throttlers[0]?.waiting ?? 0
  const answers: Promise<Answer>[] = []
  for (let i = 1; i <= count; i++) {
    answers.push(client.send('/', { headers }))
    await waits(client, before + i)
  }
  return answers
}

function left(client: AdapterClient): (number | undefined)[] {
  return client.throttlers[0]?.peek('all').parts.map(({ remaining }) => remaining) ?? []
}

/** Requests that are delayed instead of rejected (`delay`). */
export const delayingCases: readonly AdapterCase[] = [
  {
    title:
      'holds a request until there is room, rejects at once one that would wait too long, and tells what is left when the answer goes out',
    needs: 'clock',
    async run(context) {
      const client = await context.start({ ...WAITING, limit: 2 })
      assert.deepEqual(await client.statuses(['/', '/']), [200, 200])
      const held = await hold(client, 2)
      // The fifth request would wait for the window after the next.
      const rejected = await client.send('/')
      assert.equal(rejected.status, 429)
      assert.ok(Number(rejected.headers['retry-after']) >= 1)
      await context.pass(9_000)
      assert.equal(client.throttlers[0]?.waiting, 2)
      await context.pass(1_001)
      const answers = await Promise.all(held)
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
      assert.match(String(answers[1]?.headers['ratelimit']), /^"wait";r=0;t=10$/)
      assert.deepEqual(left(client), [0])
    },
  },
  {
    title: 'slows requests down step by step, by a function of how far above the limit they are and of the request',
    needs: 'clock',
    async run(context) {
      const asked: unknown[] = []
      const read = context.readHeader('x-asked')
      const delay = (over: number, request: unknown): number => {
        asked.push([over, read(request)])
        return over > 2 ? Number.POSITIVE_INFINITY : over * 1_000
      }
      const client = await context.start({ ...SLOWED, delay })
      assert.deepEqual(await client.statuses(['/']), [200])
      const [first, second] = await hold(client, 2, { 'x-asked': 'yes' })
      const rejected = await client.send('/', { headers: { 'x-asked': 'no' } })
      assert.equal(rejected.status, 429)
      assert.deepEqual(asked, [
        [1, 'yes'],
        [2, 'yes'],
        [3, 'no'],
      ])
      await context.pass(1_001)
      const answer = await (first as Promise<Answer>)
      assert.equal(answer.status, 200)
      assert.match(String(answer.headers['ratelimit']), /^"slow";r=0;t=9$/)
      await waits(client, 1)
      await context.pass(1_000)
      assert.equal((await (second as Promise<Answer>)).status, 200)
    },
  },
  {
    title: 'gives back what a held request took when its client goes away, at every level',
    needs: 'clock',
    async run(context) {
      const hour = { ...WINDOW, name: 'hour', interval: '1h', limit: 9 }
      const client = await context.start({ policies: [WAITING, { ...SLOWED, limit: 2 }, hour] })
      await client.statuses(['/', '/'])
      const gone = client.open('/')
      gone.on('error', () => {})
      gone.end()
      await eventually(() => left(client)[2] === 6, 'it is counted where there is room')
      const held = client.send('/')
      await eventually(() => left(client)[2] === 5, 'both are')
      gone.destroy()
      await eventually(() => left(client)[2] === 6, 'the first has given back')
      await context.pass(10_001)
      assert.equal((await held).status, 200)
      assert.equal(left(client)[0], 1)
      await waits(client, 0)
    },
  },
  {
    title: 'holds none of the requests that a client has sent at once, behind one that is not answered yet, when it goes away',
    needs: 'clock',
    async run(context) {
      const one = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
      for (const policy of [WAITING, SLOWED]) {
        const client = await context.start({ ...policy, limit: 1 })
        const socket = connect(client.port, '127.0.0.1')
        socket.on('error', () => {}).resume()
        socket.write(one('/slow') + one('/').repeat(3))
        await waits(client, policy === WAITING ? 1 : 3)
        socket.destroy()
        await waits(client, 0)
      }
    },
  },
  {
    title: 'holds as many requests as the queue takes, for a key and in all, and rejects others as ever',
    needs: 'clock',
    async run(context) {
      for (const policy of [WAITING, SLOWED])
        for (const queue of [{ maxWaitingPerKey: 1 }, { maxWaiting: 1 }]) {
          const client = await context.start({ ...policy, limit: 1, queue })
          assert.deepEqual(await client.statuses(['/']), [200])
          const [held] = await hold(client, 1)
          const rejected = await client.send('/')
          assert.equal(rejected.status, 429)
          assert.ok(Number(rejected.headers['retry-after']) >= 1)
          await context.pass(10_001)
          assert.equal((await (held as Promise<Answer>)).status, 200)
        }
    },
  },
  {
    title: 'leaves room in the queue for other clients when one fills it with many connections and keys',
    needs: 'clock',
    async run(context) {
      const paced = { ...WINDOW, name: 'paced', algorithm: leakyBucket({ burst: 2 }) } as const
      for (const policy of [WAITING, SLOWED, paced]) {
        const key = context.readHeader('x-key')
        const client = await context.start({ ...policy, key, limit: 1, queue: { maxWaiting: 8 } })
        let keys = 0
        let answered: number[] = []
        const held: Promise<number>[] = []
        /** Sends requests from one address, of which every second one is delayed. Returns how many wait. */
        const flood = async (localAddress: string, count: number): Promise<number> => {
          const before = client.throttlers[0]?.waiting ?? 0
          answered = []
          for (let i = 0; i < count; i++) {
            const options = { localAddress, headers: { 'x-key': `${keys++}` } }
            assert.equal((await client.send('/', options)).status, 200)
            const statuses = answered
            const answer = client.send('/', options).then(({ status }) => {
              statuses.push(status)
              return status
            })
            held.push(answer)
            await eventually(() => answered.length + (client.throttlers[0]?.waiting ?? 0) - before === i + 1, 'it is held or answered')
          }
          assert.deepEqual(
            answered,
            answered.map(() => 429),
          )
          return count - answered.length
        }
        assert.equal(await flood('127.0.0.1', 6), 4)
        // macOS has only one loopback address by default.
        if (process.platform !== 'darwin') assert.equal(await flood('127.0.0.2', 2), 2)
        await context.pass(10_001)
        const statuses = await Promise.all(held)
        assert.equal(statuses.filter((status) => status === 429).length, 2)
      }
    },
  },
  {
    title: 'holds nothing in a dry run, nothing that passes uncounted, and nothing where another level rejects',
    needs: 'clock',
    async run(context) {
      for (const policy of [WAITING, SLOWED]) {
        const dry = await context.start({ ...policy, dryRun: true })
        assert.deepEqual(await dry.statuses(['/', '/', '/', '/']), [200, 200, 200, 200])
        const skips = await context.start({ ...policy, skip: (request: unknown) => context.readHeader('x-health')(request) === 'yes' })
        for (let i = 0; i < policy.limit; i++) await skips.send('/')
        const [held] = await hold(skips, 1)
        assert.deepEqual(await skips.statuses(['/', '/'], { headers: { 'x-health': 'yes' } }), [200, 200])
        await context.pass(10_001)
        await held
        const levels = await context.start({ policies: [policy, { ...WINDOW, name: 'few', interval: '1h', limit: policy.limit }] })
        for (let i = 0; i < policy.limit; i++) assert.equal((await levels.send('/')).status, 200)
        assert.equal((await levels.send('/')).status, 429)
        assert.equal(levels.throttlers[0]?.waiting, 0)
      }
    },
  },
  {
    title: 'does not hold requests up that are held instead of being rejected when it closes',
    needs: 'clock',
    async run(context) {
      for (const policy of [WAITING, SLOWED]) {
        const client = await context.start({ ...policy, limit: 1, closeTimeout: 50 })
        await client.send('/')
        const held = await hold(client, 1)
        const closing = client.throttlers[0]?.close()
        await context.pass(60)
        await closing
        assert.equal((await (held[0] as Promise<Answer>)).status, 429)
      }
    },
  },
  {
    title: 'rejects a request whose delay function fails, and says so once',
    needs: 'clock',
    async run(context) {
      const answers: (() => unknown)[] = [
        () => {
          throw new Error('broken')
        },
        () => 'soon',
        () => Promise.reject(new Error('no')),
      ]
      let calls = 0
      const client = await context.start({ ...SLOWED, delay: () => (answers[calls++] as () => unknown)() })
      assert.deepEqual(await client.statuses(['/', '/', '/', '/']), [200, 429, 429, 429])
      assert.deepEqual(
        client.warnings.map(({ code }) => code),
        ['WEIR_WARN_CALLBACK_FAILED'],
      )
    },
  },
  {
    title: 'holds requests by what all nodes have counted, once however often the rule is mounted',
    needs: 'store',
    async run(context) {
      const policy = { name: 'held', key: 'all', limit: 2, interval: '1s', delay: '3s' }
      const client = await context.startWith([
        { ...context.base, ...policy },
        { ...context.base, ...policy },
      ])
      const answers = await Promise.all(Array.from({ length: 5 }, () => client.send('/')))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 200],
      )
    },
  },
]
