import { fork } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '@weir/tooling/bundle'
import { RedisServer } from '@weir/tooling/redis-servers'
import { expect, test } from 'vitest'

const LIMIT = 100
const PROCESSES = 10
/** Rounds with a request at each process: more than all together allow, and more than the memory store of one process allows. */
const ROUNDS = { weir: 25, memory: 105 }

test('ten processes with a limit of 100 stay within the bound, and allow 1,000 with memory stores', async () => {
  const redis = await RedisServer.start()
  const folder = await bundlePrograms(fileURLToPath(new URL('..', import.meta.url)), ['test/programs/limited.ts'], ['express'])
  const children = Array.from({ length: PROCESSES }, () => fork(`${folder}/limited.mjs`, [redis.url], { execArgv: ['--no-warnings'] }))
  try {
    const ports = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as number))
    const allowedBy = async (path: 'weir' | 'memory', pause: number) => {
      let allowed = 0
      for (let round = 0; round < ROUNDS[path]; round++) {
        const statuses = await Promise.all(ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/${path}`)).status))
        expect(statuses.every((status) => status === 200 || status === 429)).toBe(true)
        allowed += statuses.filter((status) => status === 200).length
        await setTimeout(pause)
      }
      return allowed
    }
    // The bound is limit + half of the limit + the requests of a reaction, for which six rounds are left. See docs/evidence/accuracy.md.
    const allowed = await allowedBy('weir', 100)
    expect(allowed).toBeGreaterThanOrEqual(LIMIT)
    expect(allowed).toBeLessThanOrEqual(LIMIT + LIMIT / 2 + PROCESSES)
    expect(await allowedBy('memory', 0)).toBe(PROCESSES * LIMIT)
  } finally {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
    await redis.stop()
  }
}, 180_000)
