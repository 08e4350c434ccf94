import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { RedisServer } from '@weir/tooling/redis-servers'
import { expect, test } from 'vitest'

const PROGRAM = fileURLToPath(new URL('programs/limited.ts', import.meta.url))
const LIMIT = 100
const PROCESSES = 10
/** Rounds with a request at each process: more than the memory store of one process allows. */
const ROUNDS = 105

test('ten processes with a limit of 100 stay within the bound, and allow 1,000 with memory stores', async () => {
  const redis = await RedisServer.start()
  const children = Array.from({ length: PROCESSES }, () =>
    fork(PROGRAM, [redis.url], { execArgv: ['--no-warnings', '--import', import.meta.resolve('tsx'), '--conditions=@weir/source'] }),
  )
  try {
    const ports = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as number))
    const allowedBy = async (path: string, pause: number) => {
      let allowed = 0
      for (let round = 0; round < ROUNDS; round++) {
        const statuses = await Promise.all(ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/${path}`)).status))
        expect(statuses.every((status) => status === 200 || status === 429)).toBe(true)
        allowed += statuses.filter((status) => status === 200).length
        await setTimeout(pause)
      }
      return allowed
    }
    // The pause is longer than a reaction of the processes, so that one round at most arrives within it. See docs/evidence/accuracy.md.
    const allowed = await allowedBy('weir', 20)
    expect(allowed).toBeGreaterThanOrEqual(LIMIT)
    expect(allowed).toBeLessThanOrEqual(LIMIT + LIMIT / 2 + PROCESSES)
    expect(await allowedBy('memory', 0)).toBe(PROCESSES * LIMIT)
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await redis.stop()
  }
})
