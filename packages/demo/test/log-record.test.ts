import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isAgentLine, parseLine } from '../src/log/record.ts'

const COMMON = '192.0.2.7 - - [17/Dec/2025:09:03:01 +0000] "GET /a?b=c HTTP/1.1" 200 166'
const COMBINED = `${COMMON} "-" "curl/8.0"`

describe('a line of an access log', () => {
  it('is read in the Common Log Format', () => {
    expect(parseLine(COMMON)).toEqual({
      time: Date.UTC(2025, 11, 17, 9, 3, 1),
      client: '192.0.2.7',
      method: 'GET',
      target: '/a?b=c',
      status: 200,
    })
  })

  it('is read in the Combined Log Format', () => {
    expect(parseLine(COMBINED)).toEqual(parseLine(COMMON))
  })

  it('keeps the offset of its zone', () => {
    const time = (zone: string): number | undefined => parseLine(COMMON.replace('+0000', zone))?.time
    expect(time('+0200')).toBe(Date.UTC(2025, 11, 17, 7, 3, 1))
    expect(time('-0330')).toBe(Date.UTC(2025, 11, 17, 12, 33, 1))
  })

  it('may hold escaped quotes in its request', () => {
    expect(parseLine(COMMON.replace('/a?b=c', '/a\\"b'))?.target).toBe('/a\\"b')
  })

  it('has no method when its request line is no HTTP request', () => {
    for (const request of ['', '-', '\\x16\\x03\\x01\\x02', '\\x00\\x00\\x00\\x05', 'SSH-2.0-Go', '12 /x HTTP/1.1']) {
      const record = parseLine(COMMON.replace('GET /a?b=c HTTP/1.1', request))
      expect(record, request).toMatchObject({ client: '192.0.2.7', method: undefined, target: '/' })
    }
  })

  it('may hold anything in its user field, a command and a forged record too', () => {
    const user = `';echo "[S]"; [01/Jan/2020:00:00:00 +0000] "GET / no`
    expect(parseLine(COMMON.replace('- -', `- ${user}`))).toMatchObject({ time: Date.UTC(2025, 11, 17, 9, 3, 1), target: '/a?b=c' })
  })

  it('may lack status and size', () => {
    expect(parseLine(COMMON.replace('200 166', '- -'))?.status).toBeUndefined()
  })

  it('is no record with an impossible time', () => {
    for (const time of [
      '32/Dec/2025:09:03:01',
      '31/Jun/2025:09:03:01',
      '17/Dez/2025:09:03:01',
      '17/Dec/2025:24:03:01',
      '17/Dec/2025:09:60:01',
    ]) {
      expect(parseLine(COMMON.replace('17/Dec/2025:09:03:01', time)), time).toBeUndefined()
    }
  })

  it('may be broken before its agent: both halves are told from anything else', () => {
    expect(parseLine(`${COMMON} "-"`)).toEqual(parseLine(COMMON))
    expect(isAgentLine(' "curl/7.54.0"')).toBe(true)
    expect(isAgentLine('"curl/7.54.0"')).toBe(false)
    expect(isAgentLine(COMBINED)).toBe(false)
  })

  it('never throws, whatever bytes it holds', () => {
    const piece = fc.constantFrom('192.0.2.7 ', '- ', '[17/Dec/2025:09:03:01 +0000] ', '"', '\\', 'GET / HTTP/1.1', ' 200', ' 5')
    const bytes = fc.uint8Array({ maxLength: 40 }).map((raw) => Buffer.from(raw).toString('latin1'))
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, bytes), { maxLength: 30 }), (pieces) => {
        const parsed = parseLine(pieces.join(''))
        if (parsed !== undefined) expect(Number.isFinite(parsed.time)).toBe(true)
        isAgentLine(pieces.join(''))
      }),
    )
  })

  it('takes no time that grows faster than its length', () => {
    const hostile = `1 ${'[17/Dec/2025:09:03:01 +0000] "'.repeat(4000)}`
    // Measures CPU time, because other processes may use the processor meanwhile.
    const start = process.cpuUsage()
    parseLine(hostile)
    parseLine(`${COMMON} ${'"\\'.repeat(60_000)}`)
    isAgentLine(` "${'\\"'.repeat(60_000)}`)
    expect(process.cpuUsage(start).user / 1000).toBeLessThan(1000)
  })
})
