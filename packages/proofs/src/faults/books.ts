import type { RedisServer } from '@weir/tooling/redis-servers'
import { BOOKS } from './protocol.ts'
import type { Books, Stage } from './servers.ts'

/** The records of the store of a stage. */
export function booksOf(stage: Stage): Books {
  const { servers } = stage
  return (
    stage.books ?? {
      booked: (namespace) => bookedOf(servers, namespace),
      immortals: (namespace) => immortalsOf(servers, namespace),
    }
  )
}

/** Finds the caller's key in a counter's name. The policy's name contains no colon there. */
const COUNTER = new RegExp(`:c:[^:]*${BOOKS}:(.+):\\d+$`)

/** The store's counts per key since the throttlers were made, from its readable counters. */
export async function bookedOf(servers: readonly RedisServer[], namespace: string): Promise<Map<string, number>> {
  const booked = new Map<string, number>()
  for (const [name, value] of await countersOf(servers, namespace)) {
    const key = COUNTER.exec(name)?.[1]
    if (key !== undefined) booked.set(key, (booked.get(key) ?? 0) + Number(value))
  }
  return booked
}

async function countersOf(servers: readonly RedisServer[], namespace: string): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const server of servers) {
    if (!(await isPrimary(server))) continue
    const names = (await server.keys(`${namespace}:*:c:*`)).filter((name) => name.includes(BOOKS))
    for (const name of names) {
      const value = await server.command('get', name)
      if (/^-?\d+(\.\d+)?$/.test(value)) found.set(name, value)
    }
  }
  return found
}

/** Whether a server is a primary. A replica has copies of its primary's keys, possibly stale ones. A killed server has nothing. */
async function isPrimary(server: RedisServer): Promise<boolean> {
  return (await server.command('role').catch(() => '')).startsWith('master')
}

/** Units that clients got but the store does not have, and the reverse. */
export function differenceOf(
  allowed: ReadonlyMap<string, number>,
  booked: ReadonlyMap<string, number>,
): { readonly lost: number; readonly doubled: number } {
  let lost = 0
  let doubled = 0
  for (const key of new Set([...allowed.keys(), ...booked.keys()])) {
    const missing = (allowed.get(key) ?? 0) - (booked.get(key) ?? 0)
    if (missing > 0) lost += missing
    else doubled -= missing
  }
  return { lost, doubled }
}

/** Keys of Redis that never expire, or not within a day. Every key of Weir must expire. */
export async function immortalsOf(servers: readonly RedisServer[], namespace: string): Promise<string[]> {
  const found: string[] = []
  for (const server of servers) {
    if (!(await isPrimary(server))) continue
    const names = await server.keys(`${namespace}:*`)
    for (const name of names) {
      const ttl = Number(await server.command('pttl', name))
      if (ttl === -1 || ttl > 86_400_000) found.push(`${name} for ${ttl} ms`)
    }
  }
  return found
}
