import { SEED } from '@weir/tooling/seed'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { STEP_IDS, STEPS } from '../../src/algorithms/all.ts'
import { MOST_OPEN, type OpenReservation, type Question } from '../../src/store/decider.ts'
import { changeBy, isState, lifetimeBy, takeBy } from '../../src/store/reservation.ts'
import type { AtomicStep, Verdict } from '../../src/store/step.ts'

const INTERVAL = 1_000
const LIMIT = 10
const START = 1_700_000_000_000

type StepId = (typeof STEP_IDS)[number]

/** Parameters of each step. The calendar's depend on the time. */
const PARAMETERS: Readonly<Record<StepId, (now: number) => readonly number[]>> = {
  'fixed-window': () => [INTERVAL],
  calendar: (now) => [Math.floor(now / INTERVAL + 1) * INTERVAL, Math.floor(now / INTERVAL) * INTERVAL],
  'fixed-window-first-request': () => [INTERVAL],
  'sliding-window': () => [INTERVAL, 6],
  'sliding-counter': () => [INTERVAL],
  'sliding-log': () => [INTERVAL],
  bucket: () => [INTERVAL, -1, -1, LIMIT],
  'bucket-warm-up': () => [INTERVAL, -1, 500, 3, LIMIT],
}

/** A key as a store keeps it: the state of a rejected request or a look is not written. */
class Key {
  state: number[] = []

  ask(question: Question, now: number): Verdict | undefined {
    const state = [...this.state]
    if (question.kind === 'take') {
      const verdict = takeBy(question, state, now)
      if (verdict.allowed && question.units > 0) this.state = state
      return verdict
    }
    changeBy(question, state, now)
    this.state = state
    return undefined
  }

  get open(): number {
    return this.state[0] ?? 0
  }
}

/** A naive model: a key whose reservations are settled at the moment at which they end, each by its own call of the step. */
class Prompt {
  readonly state: number[] = []
  readonly open = new Map<number, OpenReservation & { readonly at: number }>()
  readonly #step: AtomicStep
  readonly #parameters: (now: number) => readonly number[]

  constructor(step: AtomicStep, parameters: (now: number) => readonly number[]) {
    this.#step = step
    this.#parameters = parameters
  }

  pass(to: number): void {
    const ended = [...this.open.values()].filter(({ end }) => end <= to).sort((a, b) => a.end - b.end || a.id - b.id)
    for (const one of ended) this.settle(one.id, one.due, one.end)
  }

  settle(id: number, used: number, now: number): void {
    const one = this.open.get(id)
    if (one === undefined) return
    this.open.delete(id)
    if (used > one.units) this.#step.add(this.state, now, used - one.units, LIMIT, this.#parameters(now))
    if (used < one.units) this.#step.giveBack(this.state, one.at, one.units - used, now, LIMIT, this.#parameters(now))
  }

  ask({ kind, units, at, reservation }: Question, now: number): Verdict | undefined {
    const step = this.#step
    const parameters = this.#parameters(now)
    const opens = (since = now): void => {
      if (reservation && reservation.end > now && !this.open.has(reservation.id))
        this.open.set(reservation.id, { ...reservation, at: since })
    }
    if (kind === 'take') {
      const state = [...this.state]
      const verdict = step.take(state, now, units, LIMIT, parameters)
      if (verdict.allowed && units > 0) {
        this.state.splice(0, this.state.length, ...state)
        opens()
      }
      return verdict
    }
    const one = this.open.get(reservation?.id ?? -1)
    if (kind === 'add') {
      if (units > 0) step.add(this.state, now, units, LIMIT, parameters)
      opens(units > 0 ? now : at)
    }
    if (kind === 'use' && one !== undefined) this.open.set(one.id, { ...one, due: units })
    if (kind === 'settle' && one !== undefined) this.settle(one.id, units, now)
    if (kind === 'give-back' && (reservation === undefined || one !== undefined)) {
      step.giveBack(this.state, at, units, now, LIMIT, parameters)
      if (one !== undefined) this.open.delete(one.id)
    }
    return undefined
  }
}

/** One event. Few ids, so that requests are repeated, and settled after others with the same id. */
const event = fc.record({
  after: fc.oneof({ weight: 4, arbitrary: fc.nat(150) }, { weight: 1, arbitrary: fc.nat(3_000) }),
  kind: fc.constantFrom<Question['kind']>('take', 'take', 'take', 'add', 'give-back', 'use', 'settle'),
  units: fc.nat(6),
  id: fc.nat(7),
  reserves: fc.boolean(),
  before: fc.nat(300),
  ttl: fc.integer({ min: -50, max: 1_500 }),
  due: fc.nat(8),
})

test.each(STEP_IDS)('%s: open reservations of dead processes count as if they were settled at their end', (id) => {
  const parameters = PARAMETERS[id]
  const step = STEPS[id].by(parameters(START)) as AtomicStep
  const run = (events: readonly (typeof event extends fc.Arbitrary<infer E> ? E : never)[]): void => {
    const lazy = new Key()
    const prompt = new Prompt(step, parameters)
    let now = START
    const question = (rest: Pick<Question, 'kind' | 'units'> & Partial<Question>): Question => ({
      policy: { id: 'p', step, parameters: parameters(now) },
      key: 'k',
      limit: LIMIT,
      at: now,
      ...rest,
    })
    for (const { after, kind, units, id: name, reserves, ttl, due: wanted, before } of events) {
      now += after
      // A calendar's step has no interval before the running one to which a late debt could belong.
      const due = id === 'calendar' ? Math.min(wanted, units) : wanted
      const reservation = { id: name, end: now + ttl, units, due }
      const isAbout = kind === 'use' || kind === 'settle'
      const used = isAbout && id === 'calendar' ? Math.min(units, prompt.open.get(name)?.units ?? units) : units
      const asked = question({ kind, units: used, at: now - before, ...((reserves || isAbout) && { reservation }) })
      prompt.pass(now)
      expect(lazy.ask(asked, now)).toEqual(prompt.ask(asked, now))
      expect(isState(lazy.state)).toBe(true)
      for (const { end } of prompt.open.values()) expect(lifetimeBy(asked, lazy.state, now)).toBeGreaterThanOrEqual(end - now)
    }
    now += 2_000
    prompt.pass(now)
    lazy.ask(question({ kind: 'use', units: 0, reservation: { id: -1, end: 0, units: 0, due: 0 } }), now)
    expect(prompt.open.size).toBe(0)
    expect(lazy.ask(question({ kind: 'take', units: 0 }), now)).toEqual(prompt.ask(question({ kind: 'take', units: 0 }), now))
    // A month that is over keeps its number until the next one writes.
    if (id !== 'calendar') expect(lazy.state).toEqual([0, ...prompt.state])
  }
  fc.assert(fc.property(fc.array(event, { maxLength: 30 }), run), { numRuns: 300 })
})

const policy = { id: 'p', step: STEPS['fixed-window'].by([]) as AtomicStep, parameters: [86_400_000] }

function fixed(kind: Question['kind'], units: number, reservation?: OpenReservation, limit = 1e9): Question {
  return { policy, key: 'k', kind, units, limit, at: START, ...(reservation && { reservation }) }
}

test('no unit leaks, however many processes die with open reservations', () => {
  let random = SEED
  const next = (bound: number): number => (random = (random * 48_271) % 2_147_483_647) % bound
  const key = new Key()
  let counted = 0
  let now = START
  for (let id = 0; id < 5_000; id++) {
    const [units, due, used] = [1 + next(9), next(12), next(12)]
    const one = { id, end: now + 1 + next(50), units, due }
    now += next(3)
    const isOpen = now < one.end
    key.ask(fixed('take', units, one), now)
    const fate = isOpen ? next(4) : 4
    // It dies at once, dies after a report, settles twice, or cancels twice.
    if (fate === 1) key.ask(fixed('use', used, one), now)
    if (fate === 2) for (let i = 0; i < 2; i++) key.ask(fixed('settle', used, one), now)
    if (fate === 3) for (let i = 0; i < 2; i++) key.ask(fixed('give-back', units, one), now)
    counted += [due, used, used, 0, units][fate] as number
    expect(key.open).toBeLessThan(100)
  }
  const { remaining } = key.ask(fixed('take', 0), now + 100) as Verdict
  expect(1e9 - remaining).toBe(counted)
})

test.each(STEP_IDS)('%s: units come back although the clock has gone back since they were taken', (id) => {
  const step = STEPS[id].by(PARAMETERS[id](START)) as AtomicStep
  const ask = (kind: Question['kind'], units: number, now: number, reservation?: OpenReservation): Question => ({
    policy: { id: 'p', step, parameters: PARAMETERS[id](now) },
    key: 'k',
    kind,
    units,
    limit: LIMIT,
    at: now,
    ...(reservation && { reservation }),
  })
  const key = new Key()
  // In the middle of an interval, and long after the start of the warm-up.
  const now = START + INTERVAL / 2
  const one: OpenReservation = { id: 1, end: now + 400, units: 2, due: 2 }
  key.ask(ask('take', 2, now, one), now)
  // Another process believes that it is earlier.
  key.ask(ask('take', 1, now - 3), now - 3)
  const before = (key.ask(ask('take', 0, now - 2), now - 2) as Verdict).remaining
  key.ask(ask('settle', 0, now - 2, one), now - 2)
  const after = (key.ask(ask('take', 0, now - 2), now - 2) as Verdict).remaining
  expect(after - before).toBeGreaterThan(1.9)
})

test('a key keeps a bounded number of open reservations, and counts further ones without settling them', () => {
  const key = new Key()
  for (let id = 0; id < MOST_OPEN + 5; id++) key.ask(fixed('take', 2, { id, end: START + 10, units: 2, due: 1 }), START)
  expect(key.open).toBe(MOST_OPEN)
  expect(key.state).toHaveLength(1 + 5 * MOST_OPEN + 2)
  const { remaining } = key.ask(fixed('take', 0), START + 10) as Verdict
  expect(1e9 - remaining).toBe(MOST_OPEN + 2 * 5)
})

test('a state from outside is checked before it is used', () => {
  for (const state of [[], [0], [0, 5, 1], [1, 7, START, START, 2, 2, 3, 1]]) expect(isState(state)).toBe(true)
  for (const state of [[1], [-1, 0], [0.5, 0], [2, 1, 2, 3, 4, 5], [MOST_OPEN + 1], [1e12], [Number.POSITIVE_INFINITY], [Number.NaN]])
    expect(isState(state)).toBe(false)
})
