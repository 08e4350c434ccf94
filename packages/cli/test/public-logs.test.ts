import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { PlanReport } from '../src/commands/plan-report.ts'
import { rules, weir } from './weir.ts'

/** A folder of recorded traffic, which is not part of the repository. Its folder `raw` has the original logs. */
const FOLDER = join(process.env['WEIR_TRACES'] ?? '', 'raw')
const missing = !existsSync(join(FOLDER, 'vps-2025.log.gz'))
const why = missing ? ' (the environment variable WEIR_TRACES names no folder of recorded traffic)' : ''

/** Two public logs with their expected counts. An exact limiter with 30 requests per minute and client rejects `rejected` requests. */
const LOGS = [
  // A new server under a scan: TLS bytes and probes in place of requests, and a shell command in the user field.
  {
    name: 'vps-2025',
    read: { lines: 20_429, records: 20_429, withoutRequest: 276, broken: 0, unreadable: 0, late: 0, torn: [] },
    rejected: 9_033,
    clients: 22,
  },
  // A data API. More than half of its lines are ends of records that were split in two.
  {
    name: 'erddap-2024',
    read: { lines: 16_275, records: 10_479, withoutRequest: 0, broken: 5_796, unreadable: 0, late: 0, torn: [] },
    rejected: 709,
    clients: 3,
  },
]

describe.skipIf(missing).each(LOGS)(`the public log $name${why}`, ({ name, read, rejected, clients }) => {
  it('is read whole, and rejected as by an exact limiter', { timeout: 240_000 }, async () => {
    const limited = rules(`${name}.json`, { limit: 30 })
    const alone = ['--nodes', '1', '--coordination', 'local']
    const { code, out } = await weir(['plan', join(FOLDER, `${name}.log.gz`), '--rules', limited, ...alone, '--format', 'json'])
    const { log, plan }: PlanReport = JSON.parse(out)
    expect(code).toBe(0)
    expect(log).toMatchObject(read)
    expect(plan).toMatchObject({ requests: read.records, rejected, exactRejected: rejected, allowedBeyond: 0, rejectedEarly: 0 })
    expect(plan.policies[0]?.rejectedKeys).toBe(clients)
  })
})
