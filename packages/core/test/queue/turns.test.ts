import { expect, test } from 'vitest'
import { Turns } from '../../src/queue/turns.ts'

const SPEED = 5
const NEVER = Number.POSITIVE_INFINITY

/** Numbers without a pattern: Park and Miller's, Communications of the ACM 31 (1988), 1192. */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % (2 ** 31 - 1)
    return state / (2 ** 31 - 1)
  }
}

/** The times of the turns until `end`, for requests that came since 0. The first request after `end` is rejected. */
function served(
  turns: Turns,
  requests: number,
  { now = 1_000, end, most = NEVER }: { now?: number; end: number; most?: number },
): number[] {
  const times: number[] = []
  turns.begin(requests, 0, SPEED, most, now)
  for (let i = 0; i < requests; i++) {
    const at = turns.next
    turns.take()
    if (at > now + end) {
      turns.end(at)
      return times
    }
    turns.granted(at)
    times.push(at - now)
  }
  turns.end(now + end)
  return times
}

test('requests have their turns several times as fast as they came, evenly', () => {
  const times = served(new Turns(() => 0.5), 4, { end: 200 })
  expect(times).toEqual([25, 75, 125, 175])
})

test('there is no turn to wait for before there was any room, and once there is none', () => {
  const turns = new Turns(() => 0.5)
  expect(turns.next).toBe(Number.NEGATIVE_INFINITY)
  expect(turns.running).toBe(false)
  turns.begin(4, 0, SPEED, NEVER, 1_000)
  expect(turns.running).toBe(true)
  turns.end(1_100)
  expect(turns.next).toBe(Number.NEGATIVE_INFINITY)
  expect(turns.running).toBe(false)
})

test('nobody waits for a turn for longer than that', () => {
  expect(served(new Turns(() => 0.5), 4, { end: 200, most: 80 })).toEqual([25, 75, 80, 80])
})

test('those that come later wait for no turn once the front has come to them', () => {
  const turns = new Turns(() => 0.5)
  turns.begin(1, 0, SPEED, NEVER, 1_000)
  for (let i = 0; i < 10; i++) turns.take()
  // Turns have 1000 ms to catch up, and 250 ms have passed meanwhile.
  expect(turns.next).toBe(1_250)
})

test('nodes to which much and little comes are served at one pace, however little that is', () => {
  const random = numbers(20_000_003)
  const rates = [0.5, 2, 20]
  const nodes = rates.map((rate) => ({ rate, turns: new Turns(random), next: 0, waiting: [] as number[], served: 0 }))
  const rounds = 2_000
  for (let round = 1; round <= rounds; round++) {
    const now = 1_000 * round
    for (const node of nodes) {
      for (; node.next < now; node.next -= (1_000 * Math.log(random())) / node.rate) node.waiting.push(node.next)
      // Half of the requests find capacity.
      const { turns, waiting } = node
      if (waiting.length === 0) continue
      turns.begin(waiting.length, waiting[0] as number, SPEED, NEVER, now)
      while (waiting.length > 0 && turns.next <= now + 100) {
        turns.granted(turns.next)
        turns.take()
        waiting.shift()
        node.served++
      }
      turns.end(Math.max(turns.next, now + 100))
    }
  }
  for (const { rate, served } of nodes) {
    expect(served / ((rounds * rate) / 2), `${rate} a second`).toBeGreaterThan(0.9)
    expect(served / ((rounds * rate) / 2), `${rate} a second`).toBeLessThan(1.1)
  }
})
