import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Store } from '@weir/core'
import type { StoreContractFixture } from '@weir/testing'
import type { RedisServer } from '@weir/tooling/redis-servers'
import { expect } from 'vitest'

const GUIDE = new URL('../../../docs/guides/redis.md', import.meta.url)
let count = 0

/** The user that the guide shows, for `ACL SETUSER`, with another namespace. */
export function documentedUser(namespace: string, cluster = false): string[] {
  const text = readFileSync(GUIDE, 'utf8')
  const rule = /ACL SETUSER (weir on >secret [^`]+)```/.exec(text)?.[1]
  const more = /In a Cluster add `([^`]+)`/.exec(text)?.[1]
  if (rule === undefined || more === undefined) throw new Error('docs/guides/redis.md contains no permissions.')
  return `${rule} ${cluster ? more : ''}`
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(/^([~&])weir:/, `$1${namespace}:`))
}

/** For stores whose servers never hang, so that a busy machine doesn't look like a server that hangs. */
export const PATIENT = { timeout: 20_000 } as const
/** For stores whose servers hang in a case of the contract. That case must fail promptly, but not if the machine pauses for a second. */
export const BRIEF = { timeout: 1_500 } as const

/** A namespace that no other test uses, so that tests share only the server. */
export function freshNamespace(): string {
  return `weir-${process.pid}-${++count}`
}

/**
 * Returns keys that never expire, and remaining counters. A process's sequence number and the version of the block list live longer than
 * counts, but expire within an hour.
 */
async function leftoversOf(servers: readonly RedisServer[], namespace: string): Promise<string[]> {
  const found: string[] = []
  for (const server of servers) {
    const keys = await server.keys(`${namespace}:*`)
    for (const key of keys) {
      const ttl = Number(await server.command('pttl', key))
      const outlasts = /:(s:[^:]+|resets|blocks:(log|ends|keep|hand))$/.test(key) && ttl > 0 && ttl <= 3_600_000
      if (!outlasts && ttl !== -2) found.push(`${key} for ${ttl} ms`)
    }
  }
  return found
}

/** A fixture of the store contract that uses the same servers for all cases. */
export function redisFixture(
  makeStore: (namespace: string) => Store,
  servers: readonly RedisServer[],
  more: Partial<StoreContractFixture> = {},
): StoreContractFixture {
  const namespace = freshNamespace()
  const store = makeStore(namespace)
  return {
    connect: (node) => store.open(node),
    leftovers: () => leftoversOf(servers, namespace),
    close: () => {},
    ...more,
  }
}

/** The output of a process that runs this program and ends by itself. */
export async function outputOf(program: string): Promise<string> {
  const child = spawn(process.execPath, ['--import', 'tsx', '--conditions=@weir/source', '--input-type=module', '-e', program], {
    cwd: new URL('..', import.meta.url).pathname,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout?.on('data', (data) => {
    output += String(data)
  })
  expect(await once(child, 'close')).toEqual([0, null])
  return output
}
