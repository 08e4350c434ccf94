import assert from 'node:assert/strict'
import type { DecidedPolicy, LeaseReply, OpenReservation } from '@weir/core/sync'
import type { ContractCase } from './case.ts'
import type { ContractContext } from './context.ts'
import { type Asking, eachDecided, LIMIT, takenAt } from './decisions.ts'
import { type Holder, holders } from './leases.ts'

/** Milliseconds until reservations end in cases that wait for it. Longer than a pause of a busy machine. */
const SHORT = 1_500
const LONG = 600_000

const decided = ['decisions', 'reservations'] as const
const leased = ['leases', 'reservations'] as const

let made = 0

/** Opens reservations of one policy in process `a`, and reads the counts in process `b`. */
class Reserving {
  readonly #context: ContractContext
  readonly policy: DecidedPolicy
  readonly a: Asking
  readonly #b: Asking
  readonly #name: string

  constructor(context: ContractContext, policy: DecidedPolicy, a: Asking, b: Asking, name: string) {
    this.#context = context
    this.policy = policy
    this.a = a
    this.#b = b
    this.#name = name
  }

  reservation(units: number, ttl: number = LONG, due: number = units): OpenReservation {
    return { id: ++made, end: this.#context.clock.now() + ttl, units, due }
  }

  /** Takes units and opens their reservation in the same step. */
  async open(key: string, units: number, ttl?: number, due?: number): Promise<OpenReservation> {
    const reservation = this.reservation(units, ttl, due)
    await this.tell('take', key, units, reservation)
    return reservation
  }

  tell(kind: 'take' | 'add' | 'give-back' | 'use' | 'settle', key: string, units: number, reservation: OpenReservation): Promise<unknown> {
    const question = this.a.question(this.policy, key, units, kind)
    const at = kind === 'take' ? question.at : takenAt(question)
    return this.a.send(this.a.request([{ ...question, at, reservation }]))
  }

  /** Checks the units of a key that count. */
  async counts(key: string, expected: number, message: string): Promise<void> {
    const counted = LIMIT - (await this.#b.take(this.policy, key, 0)).remaining
    assert.ok(Math.abs(counted - Math.min(LIMIT, expected)) < 0.1, `${this.#name}, ${message}: ${counted} units count, not ${expected}`)
  }

  reset(key: string): Promise<void> {
    return this.#b.tell('reset', this.policy, key, 0)
  }
}

/** Runs a check for each algorithm in which a unit costs one unit. */
async function each(context: ContractContext, run: (reserving: Reserving) => Promise<void>): Promise<void> {
  await eachDecided(context, async (policy, a, b, name) => {
    if (policy.step.id !== 'bucket-warm-up') await run(new Reserving(context, policy, a, b, name))
  })
}

/** Stores that keep open reservations. */
export const reservationCases: readonly ContractCase[] = [
  {
    title: 'the units of a reservation count from its request, and after its settlement the used ones count',
    needs: decided,
    async run(context) {
      await each(context, async (one) => {
        for (const used of [0, 2, 5, 7]) {
          const key = `used ${used}`
          const reservation = await one.open(key, 5)
          await one.counts(key, 5, 'open')
          await one.tell('use', key, 1, reservation)
          await one.counts(key, 5, 'open, with a report')
          await one.tell('settle', key, used, reservation)
          await one.counts(key, used, `settled with ${used}`)
          await one.tell('settle', key, 9, reservation)
          await one.tell('give-back', key, 5, reservation)
          await one.counts(key, used, 'settled twice and given back')
        }
      })
    },
  },
  {
    title: 'a reservation whose process is silent is settled at its end, by its last report, in full or with nothing',
    needs: decided,
    async run(context) {
      const checks: (() => Promise<void>)[] = []
      await each(context, async (one) => {
        await one.open('in full', 5, SHORT)
        await one.open('nothing', 5, SHORT, 0)
        const reported = await one.open('reported', 5, SHORT)
        await one.tell('use', 'reported', 3, reported)
        const more = await one.open('more', 5, SHORT)
        await one.tell('use', 'more', 8, more)
        await one.open('open', 5, LONG, 0)
        await one.counts('nothing', 5, 'before the end')
        checks.push(async () => {
          await one.counts('in full', 5, 'in full')
          await one.counts('nothing', 0, 'nothing')
          await one.counts('reported', 3, 'by its report')
          await one.counts('more', 8, 'by its report of more units')
          await one.counts('open', 5, 'still open')
          // The process was only slow.
          await one.tell('settle', 'reported', 5, reported)
          await one.tell('give-back', 'more', 5, more)
          await one.counts('reported', 3, 'settled too late')
          await one.counts('more', 8, 'given back too late')
        })
      })
      await context.pass(SHORT + 100)
      for (const check of checks) await check()
    },
  },
  {
    title: 'a repeated request opens its reservation once, and a request opens one for units that count already',
    needs: decided,
    async run(context) {
      await each(context, async (one) => {
        const reservation = one.reservation(5)
        const question = { ...one.a.question(one.policy, 'k', 5), reservation }
        const request = one.a.request([question])
        await one.a.send(request)
        await one.a.send({ ...request, again: true })
        await one.tell('add', 'k', 0, reservation)
        await one.counts('k', 5, 'repeated')
        await one.tell('settle', 'k', 1, reservation)
        await one.a.send({ ...request, again: true })
        await one.counts('k', 1, 'repeated after the settlement')
        await one.tell('settle', 'k', 0, reservation)
        await one.counts('k', 1, 'settled twice')
        await one.a.take(one.policy, 'counted', 5)
        const later = one.reservation(5)
        await one.tell('add', 'counted', 0, later)
        await one.tell('settle', 'counted', 1, later)
        await one.counts('counted', 1, 'opened later')
      })
    },
  },
  {
    title: 'a cancelled reservation returns its units once, and closes',
    needs: decided,
    async run(context) {
      await each(context, async (one) => {
        const reservation = await one.open('k', 5)
        await one.tell('give-back', 'k', 5, reservation)
        await one.counts('k', 0, 'cancelled')
        await one.a.take(one.policy, 'k', 4)
        await one.tell('give-back', 'k', 5, reservation)
        await one.tell('settle', 'k', 0, reservation)
        await one.counts('k', 4, 'cancelled twice')
      })
    },
  },
  {
    title: 'a reset forgets open reservations',
    needs: decided,
    async run(context) {
      await each(context, async (one) => {
        const reservation = await one.open('k', 5, LONG, 0)
        await one.reset('k')
        await one.a.take(one.policy, 'k', 4)
        await one.tell('settle', 'k', 0, reservation)
        await one.counts('k', 4, 'settled after the reset')
      })
    },
  },
  {
    title: 'several takes of one request open all of their reservations, or none',
    needs: decided,
    async run(context) {
      let before: Reserving | undefined
      await each(context, async (one) => {
        const other = before
        before = one
        if (other === undefined) return
        const both = [one, other]
        const reservations = both.map((each) => each.reservation(2))
        const send = () =>
          one.a.send(
            one.a.request(
              both.map((each, i) => ({ ...each.a.question(each.policy, 'together', 2), reservation: reservations[i] as OpenReservation })),
            ),
          )
        await other.a.take(other.policy, 'together', LIMIT)
        assert.deepEqual(
          (await send()).map(({ allowed }) => allowed),
          [true, false],
        )
        await one.a.take(one.policy, 'together', 4)
        await one.tell('settle', 'together', 0, reservations[0] as OpenReservation)
        await one.counts('together', 4, 'rejected')
        await other.reset('together')
        assert.ok((await send()).every(({ allowed }) => allowed))
        for (const [i, each] of both.entries()) await each.tell('settle', 'together', 1, reservations[i] as OpenReservation)
        await one.counts('together', 5, 'together')
        await other.counts('together', 1, 'together')
        for (const each of both) await each.reset('together')
      })
    },
  },
  {
    title: 'units that a process reserved of its lease are settled at their end, once, until the process reports again',
    needs: leased,
    async run(context) {
      const [dead, slow, other] = (await holders(context, 3)) as [Holder, Holder, Holder]
      const end = context.clock.now() + SHORT
      // The dead process has used 12 of 20 units: 6 are reserved and come back, and 2 more were used than reserved.
      await dead.get({ waiting: 20 })
      dead.taken = 12
      await dead.get({
        open: [
          { due: end, back: 6 },
          { due: end, back: -2 },
        ],
      })
      await slow.get({ waiting: 10 })
      slow.taken = 10
      const open = [
        { due: end, back: 4 },
        { due: end + LONG, back: 3 },
      ]
      const report = slow.ask({ open })
      await slow.send(report)
      assert.deepEqual(counted(await other.get({})), [70, 22], 'open')
      await context.pass(SHORT + 100)
      assert.deepEqual(counted(await other.get({})), [80, 14], 'settled')
      assert.deepEqual(counted(await slow.send(report)), [80, 14], 'a repeated report')
      await slow.get({ open })
      assert.deepEqual(counted(await other.get({})), [80, 14], 'the slow process has not settled yet')
      // It settles with one unit more than it had reported.
      slow.returned = 3
      await slow.send(slow.ask({ given: 3, open: open.slice(1) }))
      assert.deepEqual(counted(await other.get({})), [79, 15], 'the slow process has settled')
    },
  },
  {
    title: 'a report of a lease that was overtaken, or a reset of the key, settles nothing later',
    needs: leased,
    async run(context) {
      const [overtaken, beside] = (await holders(context, 2)) as [Holder, Holder]
      const [cleared, resetting] = (await holders(context, 2, 'reset')) as [Holder, Holder]
      const open = [{ due: context.clock.now() + SHORT, back: 4 }]
      for (const holder of [overtaken, cleared]) {
        await holder.get({ waiting: 10 })
        holder.taken = 10
      }
      const early = overtaken.ask({ open })
      await overtaken.get({})
      await overtaken.send(early)
      await cleared.get({ open })
      const epoch = Math.floor(context.clock.now())
      assert.deepEqual(counted(await resetting.get({ epoch })), [100, 0])
      await context.pass(SHORT + 100)
      assert.deepEqual(counted(await beside.get({})), [90, 10], 'overtaken')
      assert.deepEqual(counted(await resetting.get({ epoch })), [100, 0], 'reset')
      cleared.taken = 15
      await cleared.send(cleared.ask({ epoch, cleared: 10 }))
      assert.deepEqual(counted(await resetting.get({ epoch })), [95, 5], 'used since the reset')
    },
  },
]

function counted({ free, used }: LeaseReply): [free: number, used: number] {
  return [free, used]
}
