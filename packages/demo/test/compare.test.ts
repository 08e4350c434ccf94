import { describe, expect, it } from 'vitest'
import type { CompareSummary } from '../src/report/compare-summary.ts'
import { parseWork, workBetween, workOf } from '../src/store/command-stats.ts'
import { installedRedis, RedisServer } from '../src/store/redis-server.ts'
import { ABUSE } from '../src/traffic/population.ts'
import { runDemo } from './support/run.ts'

const redis = installedRedis()

describe('what Redis has to do', () => {
  it('is read from INFO, without what asks for it', () => {
    const info = [
      '# Commandstats',
      'cmdstat_evalsha:calls=10,usec=200,usec_per_call=20.00,rejected_calls=0,failed_calls=0',
      'cmdstat_hset:calls=25,usec=50,usec_per_call=2.00,rejected_calls=0,failed_calls=0',
      'cmdstat_info:calls=99,usec=50,usec_per_call=2.00,rejected_calls=0,failed_calls=0',
      'cmdstat_client|setname:calls=3,usec=5,usec_per_call=2.00,rejected_calls=0,failed_calls=0',
      '# CPU',
      'used_cpu_sys:0.250000',
      'used_cpu_user:0.500000',
      'used_cpu_sys_children:7.000000',
    ].join('\r\n')
    expect(parseWork(info)).toEqual({ commands: 35, scripts: 10, cpu: 750 })
  })

  it.skipIf(redis === undefined)('is what a real server was asked for', async () => {
    const server = new RedisServer(redis as string)
    try {
      await server.start()
      const url = `redis://127.0.0.1:${server.port}`
      const before = await workOf(url)
      const { Redis } = await import('ioredis')
      const client = new Redis(url)
      for (let i = 0; i < 20; i++) await client.eval("return redis.call('INCR', KEYS[1])", 1, 'a')
      await client.set('b', '1')
      client.disconnect()
      expect(workBetween(before, await workOf(url))).toMatchObject({ commands: 41, scripts: 20 })
    } finally {
      server.remove()
    }
  })
})

describe.skipIf(redis === undefined)(`a comparison${redis === undefined ? ' (skipped: no redis-server on this machine)' : ''}`, () => {
  const LIMIT = 200
  const INTERVAL = 4_000
  const short = ['--compare', '--duration', '4', '--interval', '4s', '--limit', `${LIMIT}`]

  it('shows what a store costs that is asked about each request', { timeout: 300_000 }, async () => {
    const { code, stdout, stderr } = await runDemo([...short, '--json'])
    expect(stderr).toBe('')
    const summary = JSON.parse(stdout) as CompareSummary
    expect(summary.ways.map(({ coordination }) => coordination)).toEqual(['background', 'central'])
    const [background, central] = summary.ways
    expect(background?.requests).toBe(central?.requests)
    expect(background?.redis.commands).toBeGreaterThan(0)
    expect(background?.redis.commands).toBeLessThan(central?.redis.commands as number)
    // The store runs at least one script for each allowed request.
    expect(central?.redis.scripts).toBeGreaterThanOrEqual(central?.allowed as number)
    expect(background?.redis.scripts).toBeLessThan(central?.redis.scripts as number)
    for (const way of summary.ways) expect(way.gatewayMs.median).toBeGreaterThan(0)
    // A request that arrived in this interval but was decided in the next one counts there. The bound is the number of requests in the
    // longest decision time, with a clock error of half an answer's time. No request is sent in the last 2 % and the first 1 % of an
    // interval.
    const { latestMs, gatewayMs } = central as CompareSummary['ways'][number]
    const clock = gatewayMs.max / 2 + 1
    const over = Math.max(0, latestMs + gatewayMs.max + clock - 0.02 * INTERVAL) + Math.max(0, clock - 0.01 * INTERVAL)
    expect(central?.abusive.perInterval).toHaveLength(1)
    expect(central?.abusive.perInterval[0]).toBeGreaterThanOrEqual(LIMIT)
    expect(central?.abusive.perInterval[0], stdout).toBeLessThanOrEqual(LIMIT + Math.ceil((over * ABUSE * LIMIT) / INTERVAL))
    expect({ code, ok: summary.ok }).toEqual({ code: 0, ok: true })
  })

  it('and says it in words', { timeout: 300_000 }, async () => {
    const { stdout } = await runDemo([...short, '--duration', '1'])
    expect(stdout).toMatch(/Redis commands +│ +[\d,]+ │ +[\d,]+ │/)
    expect(stdout).toMatch(/Redis executed -?\d+\.\d % fewer commands/)
  })
})
