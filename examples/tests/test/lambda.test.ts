import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeConnections, type PrivateRedis, startRedis } from '../src/redis.ts'
import { type Program, startProgram } from './program.ts'

const TIMEOUT = { timeout: 180_000 }
const LIMIT = 10
const ENVIRONMENTS = 4
/** Milliseconds between two invocations of an execution environment. After a second, a process counts as frozen. */
const FROZEN = 1_100

const redis: PrivateRedis | undefined = await startRedis()
const environments: Record<'app' | 'exact', Program[]> = { app: [], exact: [] }

beforeAll(async () => {
  if (redis === undefined) return
  const start = (handler: string) => startProgram('lambda', [handler], { REDIS_URL: redis.url })
  for (const [handler, programs] of Object.entries(environments))
    programs.push(...(await Promise.all(Array.from({ length: ENVIRONMENTS }, () => start(handler)))))
}, 180_000)
afterAll(async () => {
  await Promise.all(Object.values(environments).flatMap((programs) => programs.map((program) => program.stop('SIGKILL'))))
  await redis?.stop()
})

/** Invokes a handler, and freezes its process as soon as the response is there. Each invocation has a connection of its own. */
async function invoke(program: Program): Promise<Response> {
  program.signal('SIGCONT')
  const response = await fetch(program.url, { headers: { Connection: 'close' } })
  await response.arrayBuffer()
  program.signal('SIGSTOP')
  return response
}

/** Invokes all environments of a handler one after the other, in rounds. Redis closes their connections while they are frozen. */
async function rounds(programs: readonly Program[], count: number): Promise<readonly Response[]> {
  const responses: Response[] = []
  for (let round = 0; round < count; round++) {
    for (const program of programs) responses.push(await invoke(program))
    await sleep(FROZEN / 2)
    await closeConnections(redis as PrivateRedis)
    await sleep(FROZEN / 2)
  }
  return responses
}

describe.skipIf(redis === undefined)('the lambda example, frozen between invocations', () => {
  it('limits all environments together, and no connection that was closed meanwhile is an outage', TIMEOUT, async () => {
    const [app, exact] = await Promise.all([rounds(environments.app, 4), rounds(environments.exact, 4)])
    const allowed = (responses: readonly Response[]) => responses.filter(({ status }) => status === 200).length
    expect(allowed(exact)).toBe(LIMIT)
    // On a busy machine, a sync may last longer than the 50 ms that a request waits for it.
    expect(allowed(app)).toBeGreaterThanOrEqual(LIMIT)
    expect(allowed(app)).toBeLessThan(LIMIT + ENVIRONMENTS)
    for (const responses of [app, exact]) {
      const rejected = responses.at(-1) as Response
      expect(rejected.status).toBe(429)
      expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    expect(app.at(-1)?.headers.get('ratelimit')).toMatch(/^"app";r=0;t=\d+$/)
    for (const { output } of Object.values(environments).flat()) expect(output()).not.toMatch(/Redis does not answer|storeDown/)
  })
})
