import assert from 'node:assert/strict'
import { connect, constants } from 'node:http2'
import { concurrency } from '@weir/core'
import { type AdapterCase, type AdapterClient, type AdapterContext, eventually } from './context.ts'

const LIMIT = 4
/** Clients that disconnect, one after the other. */
const CLIENTS = 12
/** The `maxDuration` of a slot, in milliseconds. */
const LEASE = 60_000

const FLIGHT = { name: 'flight', key: 'all', limit: LIMIT, algorithm: concurrency(), coordination: 'local' } as const
const ONE = { ...FLIGHT, limit: 1 }

/** A long timeout, because a store on a busy machine may answer late. */
const OVER_ALL = { coordination: 'leased', failMode: 'closed', storeTimeout: '30s' } as const

/** An error that every framework answers without printing it. */
const failure = () =>
  Object.assign(new Error('teapot'), { status: 418, statusCode: 418, getResponse: () => new Response(null, { status: 418 }) })

/** Free slots of each policy. */
function free({ throttlers }: AdapterClient): number[] {
  return throttlers[0]?.peek('all').parts.map(({ remaining }) => remaining) ?? []
}

function become(client: AdapterClient, ...slots: number[]): Promise<void> {
  return eventually(() => free(client).join() === slots.join(), `${slots.join(' and ')} slots are free`)
}

/** Sends a request whose client disconnects as soon as the handler runs or the response arrives. */
async function sendAndLeave({ work }: AdapterContext, client: AdapterClient): Promise<void> {
  const { begun } = work
  let answered = false
  const request = client.open('/work')
  request.on('error', () => {})
  request.on('response', (response) => {
    response.resume()
    answered = true
  })
  request.end()
  await eventually(() => work.begun > begun || answered, 'the handler works, or the request is rejected')
  request.destroy()
  await eventually(async () => (await client.connections()) === 0, 'its client has left')
}

/** Sends `CLIENTS` requests whose clients disconnect. The handlers run until the case ends them, with `error` or without one. */
async function leaveAll(context: AdapterContext, options: object, error?: Error): Promise<void> {
  const { work } = context
  const client = await context.start({ ...FLIGHT, ...options })
  for (let i = 0; i < CLIENTS; i++) await sendAndLeave(context, client)
  assert.deepEqual([work.begun, work.running, work.most], [LIMIT, LIMIT, LIMIT])
  assert.deepEqual(free(client), [0])
  work.end(1, error)
  await become(client, 1)
  work.end(LIMIT, error)
  await become(client, LIMIT)
  assert.equal((await client.send('/')).status, 200)
  assert.deepEqual(client.warnings, [])
}

/** Slots follow the handlers of requests, not their connections (`concurrency()`). */
export const handlerCases: readonly AdapterCase[] = [
  {
    title: 'never lets more handlers work than there are slots, however many clients leave',
    needs: 'handlerEnd',
    run: (context) => leaveAll(context, {}),
  },
  {
    title: 'never lets more handlers work than there are slots of the cluster, however many clients leave',
    needs: 'handlerEnd, store',
    run: (context) => leaveAll(context, OVER_ALL),
  },
  {
    title: 'frees the slot of a handler that throws after its client has left',
    needs: 'handlerEnd',
    run: (context) => leaveAll(context, {}, failure()),
  },
  {
    title: 'never lets more handlers work than there are slots when a client resets its streams on one HTTP/2 connection',
    needs: 'handlerEnd, http2',
    async run(context) {
      const { work } = context
      const client = await context.start(FLIGHT, { http2: true })
      const session = connect(`http://127.0.0.1:${client.port}`)
      try {
        for (let i = 0; i < CLIENTS; i++) {
          const { begun } = work
          let answered = false
          const stream = session.request({ ':path': '/work' }).on('error', () => {})
          stream.on('response', () => void (answered = true)).resume()
          const closed = new Promise((resolve) => stream.once('close', resolve))
          await eventually(() => work.begun > begun || answered, 'the handler works, or the request is rejected')
          stream.close(constants.NGHTTP2_CANCEL)
          await closed
        }
        assert.deepEqual([work.begun, work.most], [LIMIT, LIMIT])
        work.end()
        await become(client, LIMIT)
      } finally {
        session.destroy()
      }
    },
  },
  {
    title: 'frees the slot of a client that leaves while its handler works, with releaseOn "response"',
    async run(context) {
      const { work } = context
      const client = await context.start({ ...ONE, algorithm: concurrency({ releaseOn: 'response' }) })
      await sendAndLeave(context, client)
      await become(client, 1)
      assert.equal(work.running, 1)
      await sendAndLeave(context, client)
      assert.equal(work.running, 2)
      work.end()
      await become(client, 1)
    },
  },
  {
    title: 'frees each slot of a request as its policy says',
    needs: 'handlerEnd',
    async run(context) {
      const response = { ...FLIGHT, name: 'response', algorithm: concurrency({ releaseOn: 'response' }) }
      const client = await context.start({ policies: [FLIGHT, response] })
      await sendAndLeave(context, client)
      await become(client, LIMIT - 1, LIMIT)
      context.work.end()
      await become(client, LIMIT, LIMIT)
    },
  },
  {
    title: 'frees the slot of a handler that never ends when its lease is over',
    needs: 'handlerEnd, clock',
    async run(context) {
      const { work } = context
      const client = await context.start({ ...ONE, algorithm: concurrency({ maxDuration: LEASE }) })
      await sendAndLeave(context, client)
      await context.pass(LEASE - 1)
      assert.equal((await client.send('/work')).status, 429)
      await context.pass(LEASE / 10)
      const second = client.send('/work')
      await eventually(() => work.begun === 2, 'another handler works')
      assert.deepEqual(
        client.warnings.map(({ code }) => code),
        ['WEIR_WARN_SLOT_EXPIRED'],
      )
      work.end(1)
      assert.equal((await client.send('/')).status, 429)
      work.end()
      assert.equal((await second).status, 200)
      await become(client, 1)
    },
  },
  {
    title: 'starts no handler, and keeps no slot, for a client that leaves before its request is decided',
    needs: 'clock',
    async run(context) {
      let decide: ((key: string) => void) | undefined
      const key = () => (decide === undefined ? new Promise((resolve) => (decide = resolve)) : 'all')
      const client = await context.start({ ...ONE, key })
      const request = client.open('/work')
      request.on('error', () => {})
      request.end()
      await eventually(() => decide !== undefined, 'the request waits for its key')
      request.destroy()
      await eventually(async () => (await client.connections()) === 0, 'its client has left')
      decide?.('all')
      assert.equal((await client.send('/')).status, 200)
      await become(client, 1)
      assert.equal(context.work.begun, 0)
    },
  },
  {
    title:
      'starts no handler for a client that leaves while its request waits for a slot, and starts the next one when a handler has ended',
    needs: 'handlerEnd, clock',
    async run(context) {
      const { work } = context
      const client = await context.start({ ...ONE, delay: '1h' })
      const waiting = (count: number) => eventually(() => client.throttlers[0]?.waiting === count, `${count} requests wait`)
      await sendAndLeave(context, client)
      const leaves = client.open('/work')
      leaves.on('error', () => {})
      leaves.end()
      await waiting(1)
      const stays = client.send('/work')
      await waiting(2)
      leaves.destroy()
      await waiting(1)
      assert.deepEqual([work.begun, ...free(client)], [1, 0])
      work.end()
      await eventually(() => work.begun === 2, 'the handler of the one that stayed works')
      work.end()
      assert.equal((await stays).status, 200)
      await become(client, 1)
    },
  },
]
