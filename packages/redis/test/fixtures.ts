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

/** For stores whose servers never hang: a machine that does other things too must not look as one of them. */
export const PATIENT = { timeout: 20_000 } as const
/** For stores whose servers hang in a case of the contract: that case must fail promptly, but not if the machine pauses for a second. */
export const BRIEF = { timeout: 1_500 } as const

/** A namespace that no other test uses, so that tests share a server and nothing else. */
export function freshNamespace(): string {
  return `weir-${process.pid}-${++count}`
}

/**
 * Keys that never expire, and counters that are still there. A node's sequence number and the version of the block
 * list are meant to outlast the counts, and are over within an hour.
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

/** A fixture of the store contract before servers that are shared by the cases. */
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
