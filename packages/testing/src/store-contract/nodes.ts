import assert from 'node:assert/strict'
import { WeirError } from '@weir/core'
import type { HeartbeatReply } from '@weir/core/sync'
import type { ContractCase } from './case.ts'
import { type ContractNode, cell, defined, fixedPolicy, net } from './context.ts'
import { HOSTILE_KEYS } from './counts.ts'

/** Milliseconds within which a process must notice that the store is down. */
const PROMPT = 2500

/** Sends a heartbeat that reports something about a process, or reads all reports. */
async function told(
  node: ContractNode,
  about: { readonly status?: string; readonly rules?: string; readonly watch?: true },
  ttl = 60_000,
): Promise<HeartbeatReply> {
  return defined((await node.sync({ heartbeat: { ttl, cursor: '', policies: [], ...about } })).heartbeat)
}

/** A status that is hard to transport: quotes, line breaks, zeros, and the greatest length. */
const STATUS = `{"top":["a\u0000b\r\n\\"é€😀"]}${'x'.repeat(8_000)}`

/** The registry of processes, announcements and faults. */
export const nodeCases: readonly ContractCase[] = [
  {
    title: 'live nodes are counted, until they leave or are silent for longer than their ttl',
    async run(context) {
      const [a, b, c] = (await context.nodes(3)) as [ContractNode, ContractNode, ContractNode]
      assert.equal((await a.beat(undefined, [])).nodes, 1)
      assert.equal((await b.beat(undefined, [])).nodes, 2)
      assert.equal((await c.beat(undefined, [], 100)).nodes, 3)
      await context.eventually(async () => assert.equal((await a.beat('', [])).nodes, 2))
      await b.connection.close()
      await context.eventually(async () => assert.equal((await a.beat('', [])).nodes, 1))
    },
  },
  {
    title: 'a reply carries the time of the store, and a heartbeat only when asked',
    async run(context) {
      const node = await context.node()
      const before = context.clock.now()
      const reply = await context.eventually(() => node.sync({}))
      assert.ok(Math.abs(reply.time - before) < 60_000, `${reply.time} is not about ${before}`)
      assert.equal(reply.heartbeat, undefined)
      assert.deepEqual([reply.results, reply.blocks], [[], []])
    },
  },
  {
    title: 'nodes are asked for their status while one of them watches, and only who watches gets them',
    needs: ['statuses'],
    async run(context) {
      const [watching, telling, silent] = (await context.nodes(3)) as [ContractNode, ContractNode, ContractNode]
      const before = await context.eventually(() => told(silent, {}))
      assert.deepEqual([before.watched, before.statuses], [false, undefined])
      const first = await told(watching, { watch: true, status: 'own' })
      assert.equal(first.watched, true)
      assert.deepEqual(
        first.statuses?.map(({ node, status }) => [node, status]),
        [[watching.id, 'own']],
      )
      // The others learn of it with their next heartbeat. A store with replicas may need a moment.
      const asked = await context.eventually(async () => {
        const reply = await told(telling, {})
        assert.equal(reply.watched, true)
        return reply
      })
      assert.equal(asked.statuses, undefined)
      await told(telling, { status: 'older' })
      await context.pass(30)
      await told(telling, { status: STATUS })
      await context.pass(30)
      const statuses = defined((await told(watching, { watch: true })).statuses)
      const byNode = new Map(statuses.map((report) => [report.node, report]))
      assert.deepEqual([...byNode.keys()].sort(), [telling.id, watching.id].sort())
      assert.equal(byNode.get(telling.id)?.status, STATUS)
      assert.equal(byNode.get(watching.id)?.status, 'own')
      const age = (node: ContractNode): number => defined(byNode.get(node.id)).age
      assert.ok(age(telling) >= 0 && age(watching) >= age(telling), `ages: ${age(watching)} and ${age(telling)} ms`)
    },
  },
  {
    title: 'what a node told of itself is gone with the node',
    needs: ['statuses'],
    async run(context) {
      const [watching, silent, leaving] = (await context.nodes(3)) as [ContractNode, ContractNode, ContractNode]
      const seen = async (): Promise<string[]> =>
        defined((await told(watching, { watch: true })).statuses)
          .map(({ node }) => node)
          .sort()
      await context.eventually(() => told(leaving, { status: 'leaving' }))
      await context.eventually(async () => {
        await told(silent, { status: 'silent' }, 200)
        assert.deepEqual(await seen(), [leaving.id, silent.id].sort())
      })
      await leaving.connection.close()
      await context.eventually(async () => assert.deepEqual((await seen()).includes(leaving.id), false))
      await context.eventually(async () => assert.deepEqual(await seen(), []))
    },
  },
  {
    title: 'what nodes tell of their rules is handed to those who tell others, each text once, for a minute',
    needs: ['rules'],
    async run(context) {
      const [a, b, c] = (await context.nodes(3)) as [ContractNode, ContractNode, ContractNode]
      const other = `${STATUS}other`
      const rules = async (node: ContractNode, text: string): Promise<unknown> => (await told(node, { rules: text })).rules
      assert.deepEqual(await context.eventually(() => rules(a, STATUS)), [])
      assert.deepEqual(await rules(b, STATUS), [])
      assert.deepEqual(await rules(c, other), [{ node: b.id, rules: STATUS }])
      assert.deepEqual(await rules(a, STATUS), [{ node: c.id, rules: other }])
      assert.equal((await told(a, {})).rules, undefined)
      // The list of texts is bounded, even if a process sends new ones all the time.
      for (let i = 0; i < 100; i++) await told(c, { rules: `${i}` })
      const all = (await rules(b, STATUS)) as readonly unknown[]
      assert.ok(all.length > 2 && all.length <= 64, `${all.length} texts`)
    },
  },
  {
    title: 'the generation stays while nothing is lost',
    async run(context) {
      const node = await context.node()
      const policy = fixedPolicy()
      let { generation, cursor } = await node.beat(undefined, [policy])
      for (let i = 1; i <= 5; i++) {
        await node.count(policy, `k${i}`, i)
        await node.block(policy, `k${i}`, 'exceeded', 10)
        const beat = await node.beat(cursor, [policy])
        assert.equal(beat.generation, generation)
        ;({ generation, cursor } = beat)
      }
    },
  },
  {
    title: 'the write that reaches the limit announces the total, once, whatever the other limits are',
    needs: ['announcements'],
    async run(context) {
      const policy = fixedPolicy({ limit: 10 })
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.listening(a, b)
      await a.count(policy, 'k', 9)
      await a.count(policy, 'k', 12)
      await a.count(policy, 'k', 13)
      await a.count(policy, 'last', 10)
      const ordinal = context.ordinal(policy)
      // Announcements of different keys may overtake each other.
      const totals = (key: string): unknown[] => b.announcements.filter((one) => one.key === key)
      await context.eventually(() => {
        assert.deepEqual(totals('k'), [{ type: 'total', policyId: 'fixed', key: 'k', cells: [cell(ordinal, 12)] }])
        assert.deepEqual(totals('last'), [{ type: 'total', policyId: 'fixed', key: 'last', cells: [cell(ordinal, 10)] }])
      })
    },
  },
  {
    title: 'once a key is hot, each write of a twentieth of the limit is announced, of the running interval and of at least two units',
    needs: ['announcements'],
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.listening(a, b)
      const policies = [fixedPolicy({ limit: 100, hot: 25 }), fixedPolicy({ id: 'sliding', cells: 4, limit: 100, hot: 25 })]
      const small = fixedPolicy({ id: 'small', limit: 10, hot: 2 })
      const late = fixedPolicy({ id: 'late', limit: 100, hot: 25 })
      for (const taken of [30, 60]) await a.count(late, 'k', [cell(context.ordinal(late) - 1, taken)])
      for (const policy of policies) for (const units of [20, 26, 30, 35, 39, 46]) await a.count(policy, 'k', units)
      for (const units of [2, 3, 5]) await a.count(small, 'k', units)
      const totals = (id: string): number[] =>
        b.announcements.flatMap((one) => (one.type === 'total' && one.policyId === id ? [net(one)] : []))
      await context.eventually(() => {
        assert.deepEqual(totals('fixed'), [26, 35, 46])
        assert.deepEqual(totals('sliding'), [26, 35, 46])
        assert.deepEqual(totals('small'), [2, 5])
      })
      assert.ok(!totals('late').includes(60), 'an interval that is over is no news')
    },
  },
  {
    title: 'however much one exchange has to announce, and whatever the keys are, others hear of all of it',
    needs: ['announcements'],
    async run(context) {
      const policy = fixedPolicy({ limit: 1 })
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.listening(a, b)
      // More keys than most servers put into one message.
      const keys = [...HOSTILE_KEYS, ...Array.from({ length: 200 }, (_, i) => `${i} ${'é'.repeat(100)}`)]
      const ordinal = context.ordinal(policy)
      await a.sync({ entries: keys.map((key) => ({ policy, key, cells: [cell(ordinal, 1)] })) })
      await context.eventually(() => assert.deepEqual(new Set(b.announcements.map(({ key }) => key)), new Set(keys)))
      assert.equal(b.announcements.length, keys.length)
    },
  },
  {
    title: 'a key that becomes hot is announced once, and handed to a node that starts',
    needs: ['announcements'],
    async run(context) {
      const policy = fixedPolicy({ hot: 5 })
      const sliding = fixedPolicy({ id: 'sliding', cells: 4, hot: 5 })
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.listening(a, b)
      const ordinal = context.ordinal(policy)
      for (const one of [policy, sliding]) {
        for (const units of [4, 6, 7]) await a.count(one, 'hot', units)
        await a.count(one, 'cold', 4)
      }
      const expected = [policy, sliding].map(({ id }) => ({ type: 'total', policyId: id, key: 'hot', cells: [cell(ordinal, 6)] }))
      await context.eventually(() => assert.deepEqual(b.announcements, expected))

      const starting = await context.node()
      const { hot, cursor } = await context.eventually(() => starting.beat(undefined, [policy, sliding]))
      assert.deepEqual(hot.map(({ policyId, key, cells }) => [policyId, key, net({ cells })]).sort(), [
        ['fixed', 'hot', 7],
        ['sliding', 'hot', 7],
      ])
      assert.deepEqual((await starting.beat(cursor, [policy])).hot, [])
    },
  },
  {
    title: 'blocks are announced when they change, and only then',
    needs: ['announcements'],
    async run(context) {
      const policy = fixedPolicy()
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await context.listening(a, b)
      await a.block(policy, 'k', 'exceeded', 60_000)
      await a.block(policy, 'k', 'exceeded', 60_000)
      await a.block(policy, 'k', 'restore', 1000)
      await a.block(policy, 'k', 'lift', 0)
      await a.block(policy, 'k', 'lift', 0)
      await a.block(policy, 'l', 'set', 60_000)
      // Announcements of different keys may overtake each other.
      const changes = (key: string): boolean[] =>
        b.announcements.flatMap((one) => (one.type === 'block' && one.key === key ? [one.remaining > 0] : []))
      await context.eventually(() => assert.deepEqual([changes('k'), changes('l')], [[true, false], [true]]))
    },
  },
  {
    title: 'while the store is away, exchanges fail promptly; when it is back, they succeed again',
    needs: ['goAway'],
    async run(context) {
      const policy = fixedPolicy()
      const node = await context.node()
      await context.eventually(() => node.count(policy, 'k', 1))
      const comeBack = await defined(context.fixture.goAway).call(context.fixture)
      try {
        for (let i = 0; i < 3; i++) {
          const begun = context.clock.monotonic()
          await assert.rejects(node.count(policy, 'k', 2), (error) => {
            assert.ok(error instanceof WeirError, String(error))
            assert.match(error.code, /^WEIR_STORE_(UNAVAILABLE|TIMEOUT)$/)
            return true
          })
          assert.ok(context.clock.monotonic() - begun < PROMPT, 'the exchange took too long to fail')
        }
      } finally {
        // If the store stayed down, all later cases would fail too.
        await comeBack()
      }
      assert.equal(net(await context.eventually(() => node.count(policy, 'k', 2))), 2)
    },
  },
  {
    title: 'a closed connection refuses exchanges, hears nothing, and closes again without complaint',
    async run(context) {
      const policy = fixedPolicy({ limit: 1 })
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      await b.connection.close()
      await b.connection.close()
      await assert.rejects(b.count(policy, 'k', 1), (error) => error instanceof WeirError && error.code === 'WEIR_CLOSED')
      b.announcements.length = 0
      await a.count(policy, 'k', 1)
      await context.pass(50)
      assert.deepEqual(b.announcements, [])
    },
  },
]
