import assert from 'node:assert/strict'
import { leakyBucket } from '@weir/core'
import { type AdapterCase, type AdapterClient, type AdapterContext, type Answer, eventually } from './context.ts'

/** One request each 100 ms. Three more may wait. */
const PACED = { name: 'paced', key: 'all', limit: 10, interval: '1s', coordination: 'local', algorithm: leakyBucket({ burst: 3 }) } as const

/** Sends requests one after the other without waiting for their answers, so that the server gets them in this order. */
async function send(client: AdapterClient, count: number, held = 0): Promise<Promise<Answer>[]> {
  const answers: Promise<Answer>[] = []
  for (let i = 0; i < count; i++) {
    const answer = client.send('/')
    answers.push(answer)
    if (i === 0 && held === 0) await answer
    else await eventually(() => client.throttlers[0]?.waiting === held + answers.length - (held === 0 ? 1 : 0), 'the request is held')
  }
  return answers
}

/** One request an hour over all processes. Nine more may wait. */
const TOGETHER = { name: 'together', key: 'all', limit: 1, interval: '1h', algorithm: leakyBucket({ burst: 9 }) } as const

/** Whether the response has arrived. */
async function came(answer: Promise<Answer>): Promise<boolean> {
  return (await Promise.race([answer, new Promise((resolve) => setTimeout(resolve, 20))])) !== undefined
}

async function nextGoes(context: AdapterContext, client: AdapterClient, waiting: number): Promise<void> {
  await context.pass(101)
  await eventually(() => client.throttlers[0]?.waiting === waiting, `${waiting} are held`)
}

/** Requests that are delayed to a steady pace (`leakyBucket()`). */
export const holdingCases: readonly AdapterCase[] = [
  {
    title: 'holds requests to keep the pace, rejects what is too much, and tells what is left when the answer goes out',
    needs: 'clock',
    async run(context) {
      const client = await context.start(PACED)
      const answers = await send(client, 4)
      const rejected = await client.send('/')
      assert.equal(rejected.status, 429)
      assert.equal(rejected.headers['retry-after'], '1')
      for (let left = 2; left >= 0; left--) {
        assert.equal(await came(answers[3 - left] as Promise<Answer>), false)
        await nextGoes(context, client, left)
        assert.equal((await (answers[3 - left] as Promise<Answer>)).status, 200)
      }
      assert.match(String((await (answers[3] as Promise<Answer>)).headers['ratelimit']), /^"paced";r=3;t=1$/)
    },
  },
  {
    title: 'gives back the place of a held request whose client goes away, and those behind it move up',
    needs: 'clock',
    async run(context) {
      const client = await context.start(PACED)
      await client.send('/')
      const gone = client.open('/')
      gone.on('error', () => {})
      gone.end()
      await eventually(() => client.throttlers[0]?.waiting === 1, 'the first is held')
      const [second, third] = await send(client, 2, 1)
      gone.destroy()
      await eventually(() => client.throttlers[0]?.waiting === 2, 'the first has left')
      await nextGoes(context, client, 1)
      assert.equal((await (second as Promise<Answer>)).status, 200)
      assert.equal(await came(third as Promise<Answer>), false)
      await nextGoes(context, client, 0)
      assert.equal((await (third as Promise<Answer>)).status, 200)
    },
  },
  {
    title: 'holds no more requests than the queue takes',
    needs: 'clock',
    async run(context) {
      const client = await context.start({ ...PACED, queue: { maxWaiting: 1 } })
      const [, held] = await send(client, 2)
      const rejected = await client.send('/')
      assert.equal(rejected.status, 429)
      assert.equal(rejected.headers['retry-after'], '1')
      await nextGoes(context, client, 0)
      assert.equal((await (held as Promise<Answer>)).status, 200)
    },
  },
  {
    title: 'holds nothing in a dry run, and takes nothing of the pace where another level rejects',
    needs: 'clock',
    async run(context) {
      const dry = await context.start({ ...PACED, dryRun: true })
      assert.deepEqual(await dry.statuses(['/', '/', '/', '/', '/', '/']), [200, 200, 200, 200, 200, 200])
      const levels = await context.start({
        policies: [PACED, { name: 'few', key: 'all', limit: 1, interval: '1h', coordination: 'local' }],
      })
      assert.deepEqual(await levels.statuses(['/', '/', '/']), [200, 429, 429])
      await context.pass(101)
      assert.equal(levels.throttlers[0]?.peek('all').parts[0]?.remaining, 4)
    },
  },
  {
    title: 'is not held up by held requests when it closes',
    needs: 'clock',
    async run(context) {
      const client = await context.start({ ...PACED, interval: '1h', closeTimeout: 50 })
      const answers = await send(client, 3)
      const closing = client.throttlers[0]?.close()
      await context.pass(60)
      await closing
      const statuses = await Promise.all(answers.map(async (answer) => (await answer).status))
      assert.deepEqual(statuses, [200, 200, 200])
    },
  },
  {
    title:
      'holds requests so that several nodes keep the pace together, rejects what is too much, and takes back the place of one that leaves',
    needs: 'store',
    async run(context) {
      const clients = [await context.start(TOGETHER), await context.start(TOGETHER)] as const
      const [first, client] = clients
      assert.equal((await first.send('/')).status, 200)
      for (let round = 0; round < 2; round++) {
        const requests: ReturnType<AdapterClient['open']>[] = []
        const statuses: (number | undefined)[] = []
        while (!statuses.includes(429)) {
          const request = client.open('/').on('error', () => {})
          request.on('response', (response) => statuses.push(response.resume().statusCode))
          request.end()
          requests.push(request)
          await eventually(() => statuses.length + (client.throttlers[0]?.waiting ?? 0) === requests.length, 'it is held or answered')
        }
        // Only the very first request may be allowed immediately, because this process may not have the other one's count yet.
        assert.ok(statuses.filter((status) => status === 200).length <= (round === 0 ? 1 : 0), `${statuses}`)
        const held = requests.length - statuses.length
        assert.ok(held >= 1 && held <= 9, `${held} are held`)
        for (const request of requests) request.destroy()
        await eventually(() => client.throttlers[0]?.waiting === 0, 'they have left')
      }
    },
  },
  {
    title: 'lets the requests of several nodes go that keep the pace together, each in its time',
    needs: 'store',
    async run(context) {
      const options = { ...TOGETHER, limit: 4, interval: '1s', algorithm: leakyBucket({ burst: 99 }) }
      const clients = [await context.start(options), await context.start(options)]
      const answers = await Promise.all([...clients, ...clients].map((client) => client.send('/')))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
    },
  },
]
