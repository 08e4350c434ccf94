import { Redis } from 'ioredis'
import { input, report } from '../harness/child.ts'
import { FROM, READY } from './common-start.ts'
import { TOGETHER, type TogetherName } from './contenders.ts'
import { poissonArrivals } from './virtual.ts'

/** The requests of a process. */
export type Demand =
  /** Some requests wait at any time, for `during` milliseconds. */
  | { readonly kind: 'always'; readonly during: number }
  /** All requests come at once. */
  | { readonly kind: 'flood'; readonly requests: number }
  /** Requests come at random times, `rate` a second for `seconds` seconds. */
  | { readonly kind: 'random'; readonly rate: number; readonly seconds: number; readonly seed: number }

/** One of several processes that call a service which allows `limit` requests a second. */
export interface PaceInput {
  readonly contender: TogetherName
  readonly port: number
  readonly limit: number
  readonly demand: Demand
}

export interface PaceResult {
  /** The times at which requests started, by the wall clock. */
  readonly times: readonly number[]
  /** Requests that did not start. */
  readonly failed: number
  /** Commands that were sent to Redis from the start of the load until its last request. */
  readonly commands: number
}

/** Requests of one process that wait at any time. */
const WAITING = 4

const { contender, port, limit, demand } = input<PaceInput>()
let commands = 0
const { sendCommand } = Redis.prototype
Redis.prototype.sendCommand = function (...args) {
  commands++
  return sendCommand.apply(this, args)
}
// RESP2, because one of the peers does not support RESP3.
const redis = new Redis({ host: '127.0.0.1', port, protocol: 2 })
const wait: () => Promise<unknown> = TOGETHER[contender](redis, limit)
const times: number[] = []
let failed = 0
await redis.incr(READY)
// The common start of all processes, by the wall clock.
let from = 0
while (from === 0) {
  await new Promise((resolve) => setTimeout(resolve, 100))
  from = Number(await redis.get(FROM))
}
await new Promise((resolve) => setTimeout(resolve, from - Date.now()))
commands = 0
await (demand.kind === 'always' ? always(from + demand.during) : demand.kind === 'flood' ? flood(demand.requests) : random(demand))
report({ times, failed, commands } satisfies PaceResult)
process.exit(0)

async function always(until: number): Promise<void> {
  const over = new Promise((resolve) => setTimeout(resolve, until - Date.now()))
  const loop = async (): Promise<void> => {
    while (Date.now() < until) await one(until)
  }
  await Promise.race([over, Promise.all(Array.from({ length: WAITING }, loop))])
}

async function flood(requests: number): Promise<void> {
  await Promise.all(Array.from({ length: requests }, () => one()))
}

async function random({ rate, seconds, seed }: Extract<Demand, { kind: 'random' }>): Promise<void> {
  const all = poissonArrivals(rate, seconds, [1], seed).map(async ({ at }) => {
    await new Promise((resolve) => setTimeout(resolve, from + at - Date.now()))
    await one()
  })
  await Promise.all(all)
}

async function one(until = Number.POSITIVE_INFINITY): Promise<void> {
  try {
    await wait()
  } catch {
    failed++
    return
  }
  const now = Date.now()
  if (now < until) times.push(now)
}
