import { systemClock } from '@weir/core'
import { SeededRandom } from '@weir/testing'
import { expect, test } from 'vitest'
import { ServerTime } from '../src/gateway/server-time.ts'

/** A process whose clock is off by some milliseconds, and a server that reports whole seconds. */
class Pair {
  off: number
  serverOff = 0
  monotonic = 0
  readonly time: ServerTime
  readonly #random: SeededRandom

  constructor(off: number, seed: string) {
    this.off = off
    this.#random = new SeededRandom(seed)
    this.time = new ServerTime({ ...systemClock, now: () => 1e12 + this.monotonic + this.off, monotonic: () => this.monotonic })
  }

  get server(): number {
    return 1e12 + this.monotonic + this.serverOff
  }

  ask(): void {
    const sent = this.monotonic
    this.monotonic += 20 * this.#random.next()
    const date = Math.floor(this.server / 1000) * 1000
    this.monotonic += 20 * this.#random.next()
    this.time.saw(date, sent, this.monotonic)
    this.monotonic += 400 * this.#random.next()
  }

  get error(): number {
    return Math.abs(this.time.now() - this.server)
  }
}

const SEEDS = Array.from({ length: 50 }, (_, i) => `seed ${i}`)

test('a node whose clock is right goes by it', () => {
  for (const seed of SEEDS) {
    const pair = new Pair(0, seed)
    for (let i = 0; i < 100; i++) {
      pair.ask()
      expect(pair.error).toBeLessThan(1e-3)
    }
  }
})

test.each([-30_000, -700, 700, 30_000, 1e9])('a clock that is off by %i ms is a second off at most, and soon a few round trips', (off) => {
  for (const seed of SEEDS) {
    const pair = new Pair(off, seed)
    pair.ask()
    expect(pair.error).toBeLessThan(1_100)
    for (let i = 0; i < 100; i++) pair.ask()
    expect(pair.error).toBeLessThan(150)
  }
})

test('a step of the server is followed, one of the node is not', () => {
  for (const seed of SEEDS) {
    const pair = new Pair(-700, seed)
    for (let i = 0; i < 60; i++) pair.ask()
    pair.off += 90_000
    expect(pair.error).toBeLessThan(1_100)
    pair.serverOff = 45_000
    for (let i = 0; i < 100; i++) pair.ask()
    expect(pair.error).toBeLessThan(150)
  }
})

test('answers that tell no time change nothing', () => {
  const pair = new Pair(0, 'none')
  for (const date of [Number.NaN, 0, -1]) pair.time.saw(date, 0, 1)
  expect(pair.time.now()).toBe(1e12)
})
