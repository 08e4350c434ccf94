import { statSync } from 'node:fs'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { Logs } from '../../src/log/logs.ts'
import { file, line } from '../weir.ts'

const REQUESTS = 40_000
const text = Array.from({ length: REQUESTS }, (_, i) => line(i, `192.0.${(i * 31) % 256}.${(i * 17) % 256}`)).join('')

it.each([
  ['plain', file('done.log', text)],
  ['compressed, and smaller than one read', file('done.gz', gzipSync(text))],
])('a log that is %s: its progress is the part of its requests that are done', async (_, path) => {
  const logs = await Logs.open([path], Readable.from([]))
  const { size } = statSync(path)
  expect(logs.size).toBe(size)
  let requests = 0
  let frames = 0
  for await (const records of logs.read()) {
    for (const _ of records) {
      if (requests++ % 1_000 !== 0) continue
      frames++
      expect(Math.abs(logs.done(requests) / size - requests / REQUESTS)).toBeLessThan(0.15)
    }
  }
  expect([requests, frames, logs.done(requests)]).toEqual([REQUESTS, REQUESTS / 1_000, size])
})
