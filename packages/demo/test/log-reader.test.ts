import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { UsageError } from '../src/errors.ts'
import { LogReader, readLog } from '../src/log/reader.ts'
import type { LogRecord } from '../src/log/record.ts'

const line = (client: string, second: number): string =>
  `${client} - - [17/Dec/2025:09:03:${String(second).padStart(2, '0')} +0000] "GET / HTTP/1.1" 200 1 "-" "x"`
const BROKEN = `${line('c', 3).slice(0, -' "x"'.length)} \n "curl/7.54.0"`

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'weir-log-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function read(
  content: Buffer | string,
  name = 'access.log',
): Promise<{ clients: string[]; report: Awaited<ReturnType<typeof readLog>> }> {
  const file = join(folder, name)
  writeFileSync(file, content)
  const clients: string[] = []
  const report = await readLog(file, ({ client }) => clients.push(client))
  return { clients, report }
}

describe('a log', () => {
  it('is read record by record, its last line with or without a line end', async () => {
    expect((await read(`${line('a', 1)}\n${line('b', 2)}`)).clients).toEqual(['a', 'b'])
    expect((await read(`${line('a', 1)}\r\n\r\n${line('b', 2)}\r\n`)).clients).toEqual(['a', 'b'])
  })

  it('is read from gzip, whatever its name is, in several members too', async () => {
    const content = Buffer.concat([gzipSync(`${line('a', 1)}\n`), gzipSync(`${line('b', 2)}\n`)])
    expect((await read(content, 'plain.txt')).clients).toEqual(['a', 'b'])
  })

  it('counts dirty lines and skips them', async () => {
    const { clients, report } = await read(`hello\n${line('a', 1)}\n\x00\x01\x02\n "agent of nobody\n${line('b', 2)}\n`)
    expect(clients).toEqual(['a', 'b'])
    expect(report).toMatchObject({ lines: 5, records: 2, skipped: 3, broken: 0 })
  })

  it('reads records that are broken in front of their agent, their second halves in whatever order', async () => {
    const { clients, report } = await read(`${line('a', 1)}\n${BROKEN}\n "Python/3"\n${line('b', 4)}\n`)
    expect(clients).toEqual(['a', 'c', 'b'])
    expect(report).toMatchObject({ lines: 5, records: 3, broken: 2, skipped: 0 })
  })

  it('counts records without an HTTP request', async () => {
    const { report } = await read(`${line('a', 1).replace('GET / HTTP/1.1', '\\x16\\x03')}\n`)
    expect(report).toMatchObject({ records: 1, withoutRequest: 1 })
  })

  it('skips a line of any length without keeping it', async () => {
    const { clients, report } = await read(`${'x'.repeat(3_000_000)}\n${line('a', 1)}\n${'y'.repeat(300_000)}`)
    expect(clients).toEqual(['a'])
    expect(report).toMatchObject({ lines: 3, skipped: 2 })
  })

  it('may end in the middle of its compressed data', async () => {
    const whole = gzipSync(Array.from({ length: 5000 }, (_, i) => line(`client-${(i * 7919) % 5000}`, i % 60)).join('\n'))
    const { clients, report } = await read(whole.subarray(0, whole.length / 2))
    expect(report.truncated).toBe(true)
    expect(clients.length).toBeGreaterThan(100)
  })

  it('that cannot be read is a mistake of the user, told in one line', async () => {
    await expect(readLog(join(folder, 'none.log'), () => {})).rejects.toThrow(/cannot read the log .*: there is no such file$/)
    await expect(readLog(folder, () => {})).rejects.toThrow(/it is a folder$/)
    const damaged = gzipSync('x'.repeat(1000))
    damaged.fill(0xff, 10)
    await expect(read(damaged)).rejects.toThrow(UsageError)
  })

  it('gives the same records in whatever pieces it comes, and never throws on random bytes', () => {
    const part = fc.oneof(
      fc.constantFrom(`${line('a', 1)}\n`, `${BROKEN}\n`, '\n', '\r\n', ' "agent"\n'),
      fc.uint8Array({ maxLength: 60 }).map((raw) => Buffer.from(raw).toString('latin1')),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.array(fc.nat(400), { maxLength: 6 }), (parts, cuts) => {
        const content = Buffer.from(parts.join(''), 'latin1')
        expect(collect(content, cuts)).toEqual(collect(content, []))
      }),
    )
  })
})

function collect(content: Buffer, cuts: readonly number[]): { records: LogRecord[]; report: LogReader['report'] } {
  const records: LogRecord[] = []
  const reader = new LogReader((record) => records.push(record))
  let from = 0
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    const to = Math.min(content.length, cut)
    if (to > from) reader.write(content.subarray(from, to))
    from = Math.max(from, to)
  }
  reader.write(content.subarray(from))
  reader.end()
  return { records, report: reader.report }
}
