import type { RedisServer } from '@weir/tooling/redis-servers'
import type { Stage } from './servers.ts'

/** A slot that is moving from one primary of a Cluster to another. */
interface Move {
  readonly slot: string
  readonly from: RedisServer
  readonly to: RedisServer
  readonly toId: string
}

const moves = new WeakMap<Stage, Move>()
/** Keys that one MIGRATE moves. */
const MOST = '100'

/**
 * Moves half of the keys of a slot that is in use, and stops there. The keys of the next request are on one of the primaries, or on
 * both.
 */
export async function beginMove(stage: Stage): Promise<void> {
  const primaries: RedisServer[] = []
  for (const server of stage.servers) if ((await server.command('role')).startsWith('master')) primaries.push(server)
  for (const from of primaries) {
    const [key] = await from.keys('*:n:*greedy*')
    const to = primaries.find((server) => server !== from)
    if (key === undefined || to === undefined) continue
    const slot = await from.command('cluster', 'keyslot', key)
    const toId = await to.command('cluster', 'myid')
    await to.command('cluster', 'setslot', slot, 'importing', await from.command('cluster', 'myid'))
    await from.command('cluster', 'setslot', slot, 'migrating', toId)
    const move = { slot, from, to, toId }
    moves.set(stage, move)
    const keys = await keysOf(move)
    await migrate(move, keys.slice(0, Math.ceil(keys.length / 2)))
    return
  }
  throw new Error('No primary holds the key.')
}

/** Moves the other keys, and informs all servers. */
export async function endMove(stage: Stage): Promise<void> {
  const move = moves.get(stage)
  if (move === undefined) return
  for (let keys = await keysOf(move); keys.length > 0; keys = await keysOf(move)) await migrate(move, keys)
  const { slot, to, toId } = move
  // The new owner must be informed first, because the old one would send the slot back.
  for (const server of [to, ...stage.servers.filter((other) => other !== to)]) {
    await server.command('cluster', 'setslot', slot, 'node', toId).catch(() => {})
  }
}

async function keysOf({ from, slot }: Move): Promise<string[]> {
  return (await from.command('cluster', 'getkeysinslot', slot, MOST)).split('\n').filter((key) => key !== '')
}

async function migrate({ from, to }: Move, keys: readonly string[]): Promise<void> {
  if (keys.length > 0) await from.command('migrate', '127.0.0.1', String(to.port), '', '0', '1000', 'replace', 'keys', ...keys)
}
