import assert from 'node:assert/strict'
import { type AdapterCase, eventually } from './context.ts'

/** Changes at run time: new rules, and costs that are known only after the response. */
export const runTimeCases: readonly AdapterCase[] = [
  {
    title: 'charges a request for what its response turned out to cost',
    async run(context) {
      const client = await context.start({ ...context.limit(1000), key: 'all' })
      const left = () => client.throttlers[0]?.peek('all').remaining
      assert.equal((await client.send('/bytes/300')).body.length, 300)
      await eventually(() => left() === 1000 - 1 - 300, 'a unit is charged for each byte')
      // Spent units count even beyond the limit, so the next request pays for them.
      assert.equal((await client.send('/bytes/900')).status, 200)
      await eventually(() => left() === 0, 'the limit is used up')
      assert.equal((await client.send('/')).status, 429)
    },
  },
  {
    title: 'charges a request for the time that it took',
    async run(context) {
      const client = await context.start({ ...context.limit(200), key: 'all' })
      const left = () => client.throttlers[0]?.peek('all').remaining ?? 0
      const before = left()
      assert.equal((await client.send('/busy/60')).body, 'done')
      // Timers may fire a little before their time.
      await eventually(() => left() <= before - 1 - 55, 'a unit is charged for each millisecond')
      // Fractions of a unit are charged too. A request needs a whole unit.
      const fits = () => client.throttlers[0]?.peek('all').allowed === true
      for (let sent = 0; fits() && sent < 4; sent++) {
        const then = left()
        await client.send('/busy/60')
        await eventually(() => left() < then - 55 || !fits(), 'another request is charged for')
      }
      assert.equal((await client.send('/busy/60')).status, 429)
    },
  },
  {
    title: 'charges every policy that applied, and gives nothing of it to others',
    async run(context) {
      const client = await context.start({
        policies: [
          { name: 'all', ...context.limit(500), key: 'all' },
          { name: 'user', ...context.limit(300), key: context.readHeader('x-user') },
        ],
      })
      const as = (user: string, path: string) => client.send(path, { headers: { 'x-user': user } })
      await as('ann', '/bytes/299')
      await eventually(async () => (await as('ann', '/')).status === 429, 'the bytes are charged')
      const { headers } = await as('bob', '/')
      assert.match(String(headers['ratelimit']), /^"all";r=199;t=\d+, "user";r=299;t=\d+$/)
    },
  },
  {
    title: 'swaps rules under load, and keeps counts and blocks of those that stay',
    async run(context) {
      const user = { name: 'user', ...context.limit(40), key: context.readHeader('x-user') }
      const rules = (limit: number) => [user, { name: 'other', ...context.limit(limit), key: 'all' as const }]
      const client = await context.start({ policies: rules(10_000) })
      const throttler = client.throttlers[0]
      throttler?.block('eve', '1h', { policy: 'user' })
      const as = async (name: string) => (await client.send('/', { headers: { 'x-user': name } })).status
      const statuses: Promise<number>[] = []
      for (let round = 0; round < 10; round++) {
        for (let i = 0; i < 8; i++) statuses.push(as('ann'), as('eve'))
        await Promise.race(statuses.slice(-4))
        throttler?.update(round % 2 === 0 ? [user] : rules(10_000 + round))
      }
      const all = await Promise.all(statuses)
      const allowed = (of: number) => all.filter((status, i) => i % 2 === of && status === 200).length
      assert.deepEqual([allowed(0), allowed(1)], [40, 0])
      assert.deepEqual(new Set(all), new Set([200, 429]))
      assert.deepEqual([await as('ann'), await as('eve'), await as('bob')], [429, 429, 200])
    },
  },
  {
    title: 'follows a changed limit from the next request on, in its fields too',
    async run(context) {
      const client = await context.start({ name: 'user', ...context.limit(2), key: 'all' })
      assert.deepEqual(await client.statuses(['/', '/', '/']), [200, 200, 429])
      client.throttlers[0]?.update([{ name: 'user', ...context.limit(4), key: 'all' }])
      const { status, headers } = await client.send('/')
      assert.equal(status, 200)
      assert.match(String(headers['ratelimit-policy']), /^"user";q=4;/)
      assert.match(String(headers['ratelimit']), /^"user";r=1;/)
      assert.deepEqual(await client.statuses(['/', '/']), [200, 429])
    },
  },
]
