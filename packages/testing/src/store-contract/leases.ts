import assert from 'node:assert/strict'
import { HELD, type LeaseAsk, type LeaseReply, type Ordinal, type StorePolicy } from '@weir/core/sync'
import type { ContractCase } from './case.ts'
import { type ContractContext, type ContractNode, defined, fixedPolicy } from './context.ts'

// The interval is a day, so that it almost never ends during a case (one in a million).
const policy = fixedPolicy({ width: 86_400_000, limit: 100, ttl: 2 * 86_400_000 })

/** One process's counts in one interval of a key, as it sends them. */
export class Holder {
  readonly #node: ContractNode
  readonly #key: string
  readonly #ordinal: Ordinal
  readonly #policy: StorePolicy
  seq = 0
  granted = 0
  returned = 0
  taken = 0

  constructor(node: ContractNode, key: string, ordinal: Ordinal, of: StorePolicy = policy) {
    this.#node = node
    this.#key = key
    this.#ordinal = ordinal
    this.#policy = of
  }

  /** Makes the next request for a lease: for waiting requests, or `ahead` of requests. */
  ask({ waiting = 0, ahead = 0, ...rest }: { waiting?: number; ahead?: number } & Partial<LeaseAsk> = {}): LeaseAsk {
    const { granted, returned, taken } = this
    const none = { ordinal: this.#ordinal, incarnation: 0, given: 0, cleared: 0, epoch: 0, nodes: 2, early: 1_000, lifetime: 400 }
    const wanted = granted + waiting
    const least = waiting > 0 ? granted + 1 : granted
    return { ...none, seq: ++this.seq, granted, returned, taken, least, waiting: wanted, upTo: wanted + ahead, limit: 100, ...rest }
  }

  async send(ask: LeaseAsk): Promise<LeaseReply> {
    const reply = await this.#node.sync({ entries: [{ policy: this.#policy, key: this.#key, cells: [], lease: ask }] })
    return defined(defined(reply.results[0]).lease)
  }

  async get(wish: Parameters<Holder['ask']>[0]): Promise<LeaseReply> {
    const reply = await this.send(this.ask(wish))
    this.granted = Math.max(this.granted, reply.granted)
    return reply
  }

  get held(): number {
    return this.granted - this.returned - this.taken
  }
}

export async function holders(context: ContractContext, count: number, key = 'k'): Promise<Holder[]> {
  const nodes = await context.nodes(count)
  return nodes.map((node) => new Holder(node, key, context.ordinal(policy)))
}

const needs = ['leases'] as const

export const leaseCases: readonly ContractCase[] = [
  {
    title: 'quota is granted ahead up to half of what is left, and never more than the limit to all nodes',
    needs,
    async run(context) {
      const [a, b, c] = (await holders(context, 3)) as [Holder, Holder, Holder]
      const first = await a.get({ ahead: 80 })
      assert.deepEqual([first.granted, first.free, first.tail], [50, 50, false])
      assert.equal((await b.get({ ahead: 10 })).granted, 10)
      assert.equal((await c.get({ waiting: 30 })).granted, 30, 'what waits gets all that it needs')
      await Promise.all([a, b, c].map((holder) => holder.get({ waiting: 7, ahead: 50 })))
      assert.equal(a.granted + b.granted + c.granted <= 100, true)
      const last = await a.get({ waiting: 1, ahead: 10 })
      assert.equal(last.tail, true)
    },
  },
  {
    title: 'an ask counts once, however often it comes, and one that comes late is granted nothing',
    needs,
    async run(context) {
      const [a, b] = (await holders(context, 2)) as [Holder, Holder]
      const early = a.ask({ ahead: 20 })
      const twice = a.ask({ ahead: 10 })
      assert.equal((await a.send(twice)).granted, 10)
      assert.equal((await a.send(twice)).granted, 10)
      assert.equal((await a.send(early)).granted, 10)
      assert.equal((await b.get({})).free, 90)
    },
  },
  {
    title: 'what a node gives back others are granted, and what it has used counts as used',
    needs,
    async run(context) {
      const [a, b] = (await holders(context, 2)) as [Holder, Holder]
      await a.get({ waiting: 100 })
      assert.deepEqual(await b.get({ waiting: 5 }).then(({ granted, free, used, tail }) => [granted, free, used, tail]), [0, 0, 0, true])
      a.taken = 60
      a.returned = 38
      const told = await a.get({})
      assert.deepEqual([told.granted, told.free, told.used], [100, 38, 60])
      assert.equal((await b.get({ waiting: 5 })).granted, 5)
      // An older message of the same process changes nothing.
      await a.send({ ...a.ask(), returned: 0, taken: 0 })
      assert.deepEqual(await b.get({}).then(({ free, used }) => [free, used]), [33, 60])
    },
  },
  {
    title: 'when little is left only requests that wait are granted units, and whole ones',
    needs,
    async run(context) {
      const [a, b] = (await holders(context, 2)) as [Holder, Holder]
      await a.get({ waiting: 98 })
      assert.equal((await b.get({ ahead: 10 })).granted, 0)
      assert.equal((await b.send(b.ask({ waiting: 3, least: 3 }))).granted, 0)
      assert.equal((await b.get({ waiting: 1, ahead: 10 })).granted, 1)
    },
  },
  {
    title: 'units that were charged beyond what was granted count, and a lowered limit holds for what is granted from then on',
    needs,
    async run(context) {
      const [a, b] = (await holders(context, 2)) as [Holder, Holder]
      await a.get({ waiting: 10 })
      a.taken = 40
      assert.deepEqual(await a.get({}).then(({ free, used }) => [free, used]), [60, 40])
      assert.equal((await b.send(b.ask({ waiting: 20, least: 1, limit: 50 }))).granted, 10)
      assert.equal((await b.send(b.ask({ waiting: 20, least: 1, limit: 30 }))).granted, 10)
    },
  },
  {
    title: 'a node that forgot what it had is another one',
    needs,
    async run(context) {
      const [a] = (await holders(context, 1)) as [Holder]
      await a.get({ waiting: 30 })
      const anew = await a.send({ ...a.ask({ incarnation: 1 }), seq: 1, granted: 0, least: 1, waiting: 1, upTo: 1 })
      assert.deepEqual([anew.granted, anew.free], [1, 69])
    },
  },
  {
    title: 'a reset forgets what was used, and not what nodes hold',
    needs,
    async run(context) {
      const [a, b] = (await holders(context, 2)) as [Holder, Holder]
      await a.get({ waiting: 50 })
      a.taken = 30
      await a.get({})
      const epoch = Math.floor(context.clock.now())
      const after = await b.send(b.ask({ epoch }))
      assert.deepEqual([after.free, after.used, after.epoch], [80, 0, epoch])
      a.taken = 35
      const heard = await a.send(a.ask({ epoch, cleared: 35 }))
      assert.deepEqual([heard.free, heard.used, heard.epoch], [85, 0, epoch])
    },
  },
  {
    title: 'units of an interval that is over are not granted, and those of the next one in the last span only',
    needs,
    async run(context) {
      const [node] = (await context.nodes(1)) as [ContractNode]
      const now = context.ordinal(policy)
      for (const off of [-2, -1, 1]) {
        const holder = new Holder(node, 'k', (now + off) as Ordinal)
        const { granted, now: time } = await holder.get({ waiting: 1, early: 1 })
        assert.equal(granted, 0)
        assert.ok(Math.abs(time - context.clock.now()) < 60_000, 'the time of the store is told')
      }
      const next = new Holder(node, 'k', (now + 1) as Ordinal)
      assert.equal((await next.get({ waiting: 1, early: policy.width })).granted, 1)
    },
  },
  {
    title: 'what has no interval is free again when its node was not heard of for the lifetime that it told last',
    needs,
    async run(context) {
      const nodes = await context.nodes(4)
      const [silent, lasting, renewed, late] = nodes.map((node) => new Holder(node, 'k', HELD)) as [Holder, Holder, Holder, Holder]
      await silent.get({ waiting: 30, lifetime: 1_500 })
      await lasting.get({ waiting: 20, lifetime: 60_000 })
      await renewed.get({ waiting: 10, lifetime: 1_500 })
      renewed.taken = 10
      assert.deepEqual(await renewed.get({ lifetime: 60_000 }).then(({ granted, free, used }) => [granted, free, used]), [10, 40, 10])
      await context.pass(1_600)
      const { granted, free, used } = await late.get({ waiting: 100, least: 1, lifetime: 60_000 })
      assert.deepEqual([granted, free, used], [70, 0, 10])
      const anew = await silent.send({
        ...silent.ask({ lifetime: 60_000 }),
        incarnation: 1,
        granted: 0,
        least: 0,
        waiting: 0,
        upTo: 0,
        taken: 25,
      })
      assert.deepEqual([anew.granted, anew.free, anew.used], [0, 0, 35], 'what still runs counts, above the limit')
      late.returned = 40
      assert.equal((await late.get({ lifetime: 60_000 })).free, 15)
    },
  },
  {
    title: 'what has no interval comes back as it is returned, and the same units are granted again and again',
    needs,
    async run(context) {
      const [a, b] = (await context.nodes(2)).map((node) => new Holder(node, 'k', HELD)) as [Holder, Holder]
      for (let round = 1; round <= 5; round++) {
        assert.equal((await a.get({ waiting: 60, lifetime: 60_000 })).granted, 60 * round)
        assert.equal((await b.get({ waiting: 60, least: b.granted + 60, lifetime: 60_000 })).granted, b.returned, 'there are not so many')
        a.returned = 60 * round
        assert.equal((await a.get({ lifetime: 60_000 })).free, 100)
      }
    },
  },
  {
    title: 'after a loss the larger counts, and nothing is granted to the key for a heartbeat lifetime',
    needs: ['leases', 'lose'],
    async run(context) {
      const nodes = await context.nodes(2)
      const [a, b] = nodes.map((node) => new Holder(node, 'k', context.ordinal(policy))) as [Holder, Holder]
      // A lifetime longer than a pause of a busy machine, so that `b` sends its request while the store grants nothing.
      const lifetime = 1_500
      await a.get({ waiting: 60 })
      await context.fixture.lose?.()
      // Both processes reconnect before the time starts in which nothing is granted.
      for (const node of nodes) await context.eventually(() => node.sync({}))
      const told = await context.eventually(() => a.get({ waiting: 1, lifetime }))
      assert.deepEqual([told.granted, told.free], [60, 40])
      assert.ok(told.quiet > 0)
      assert.equal((await b.get({ waiting: 1, lifetime })).granted, 0)
      await context.pass(lifetime + 100)
      assert.equal((await b.get({ waiting: 1, lifetime })).granted, 1)
    },
  },
  {
    title: 'that little is left, or something again, is announced, and heartbeats tell it as well',
    needs: ['leases', 'announcements'],
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.eventually(async () => void (await b.beat(undefined, [policy])))
      const ordinal = context.ordinal(policy)
      const heard = (key: string) => b.announcements.filter((one) => one.type === 'lease' && one.key === key)
      // A subscription may begin a little after the first reply.
      let key = 0
      await context.eventually(async () => {
        await new Holder(a, `probe ${key++}`, ordinal).get({ waiting: 99 })
        await context.pass(20)
        assert.ok(
          b.announcements.some(({ type }) => type === 'lease'),
          'nothing is announced',
        )
      })
      const holder = new Holder(a, 'k\n\u00e9 %', ordinal)
      await holder.get({ waiting: 100, lifetime: 60_000 })
      const notice = { type: 'lease', policyId: policy.id, key: 'k\n\u00e9 %', ordinal, free: 0, tail: true, lost: false }
      await context.eventually(() => assert.deepEqual(heard('k\n\u00e9 %'), [notice]))
      const { heartbeat } = await b.sync({ heartbeat: { ttl: 60_000, cursor: undefined, policies: [policy], leases: true } })
      const told = heartbeat?.leases?.find((one) => one.key === notice.key)
      assert.deepEqual(told, notice)
      holder.returned = 40
      await holder.get({})
      await context.eventually(() => assert.deepEqual(heard('k\n\u00e9 %').at(-1), { ...notice, free: 40, tail: false }))
    },
  },
]
