import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { exactLimiter, rejectedOf } from '../src/traces/exact.ts'
import { replay } from '../src/traces/replay.ts'
import { type Request, readTrace, tracesIn, withoutSilence } from '../src/traces/trace-file.ts'

const MINUTE = 60_000

/** One client sends 8 requests at the end of a minute and 8 in the next one, and an hour later again. Another client is calm. */
const requests: readonly Request[] = [0, 60].flatMap((begin) =>
  [50, 70].flatMap((second) =>
    Array.from({ length: 8 }, (_, index) => ({ time: begin * MINUTE + second * 1000, client: index === 0 ? 'calm' : 'hasty' })),
  ),
)

test('a trace is read from its file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-traces-'))
  try {
    writeFileSync(join(folder, 'one.tsv.gz'), gzipSync('epoch_ms\tclient\tmethod\n1000\ta\tGET\n2000\tb\tGET\n'))
    expect(tracesIn(folder)).toEqual(['one'])
    expect(readTrace(folder, 'one')).toEqual([
      { time: 1000, client: 'a' },
      { time: 2000, client: 'b' },
    ])
    expect(tracesIn(join(folder, 'absent'))).toBeUndefined()
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.each(['fixed', 'sliding'] as const)('silence that is taken out changes no decision: %s', (window) => {
  const short = withoutSilence(requests)
  expect(short.at(-1)?.time).toBeLessThan(10 * MINUTE)
  const decisions = requests.map(exactLimiter(window, 10, MINUTE))
  expect(short.map(exactLimiter(window, 10, MINUTE))).toEqual(decisions)
  expect(rejectedOf(requests, decisions)).toEqual(window === 'fixed' ? { clients: 0, requests: 0 } : { clients: 1, requests: 8 })
})

test('one node rejects whom an exact limiter rejects', async () => {
  const decisions = await replay(withoutSilence(requests), { window: 'fixed', limit: 5, interval: MINUTE, nodes: 1 })
  expect(decisions).toEqual(requests.map(exactLimiter('fixed', 5, MINUTE)))
})
