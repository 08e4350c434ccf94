import { describe, expect, it } from 'vitest'
import { parseJsonLine } from '../../src/log/json-line.ts'
import { parseTextLine } from '../../src/log/text-line.ts'

describe('a line of the Common or Combined Log Format', () => {
  it('is read, in any time zone', () => {
    const record = parseTextLine(
      '203.0.113.9 - frank [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 "http://x/" "Mozilla/4.08"',
    )
    expect(record).toMatchObject({
      time: Date.UTC(2000, 9, 10, 20, 55, 36),
      coarse: true,
      client: '203.0.113.9',
      method: 'GET',
      target: '/a?b=c',
    })
    expect(['user', 'referer', 'user-agent', 'x-other'].map((name) => record?.field(name))).toEqual([
      'frank',
      'http://x/',
      'Mozilla/4.08',
      undefined,
    ])
  })

  it.each([
    ['no user agent', 'host.example - - [01/Aug/1995:00:00:01 -0400] "GET /x HTTP/1.0" 200 -', '/x'],
    ['no version', '1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] "GET /y" 404 12', '/y'],
    ['a forged time in the user', '1.2.3.4 - [02/Jan/2020:00:00:00 +0000] "x [01/Aug/1995:00:00:01 -0400] "GET /z HTTP/1.1" 200 1', '/z'],
    ['quotes in the target', '1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] "GET /\\"q HTTP/1.1" 200 1', '/\\"q'],
    ['more fields behind', '1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] "GET /m HTTP/1.1" 200 1 "-" "curl" 0.003 "upstream"', '/m'],
    ['a virtual host with quotes before', '"1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] "GET /v HTTP/1.1" 200 1 "-" "x""', '/v'],
  ])('with %s', (_, line, target) => {
    expect(parseTextLine(line)).toMatchObject({ time: Date.UTC(1995, 7, 1, 4, 0, 1), target, valid: true })
  })

  it('without an HTTP request is one all the same', () => {
    const line = '1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] "\\x16\\x03\\x01" 400 1'
    expect(parseTextLine(line)).toMatchObject({ method: 'GET', target: '/', valid: false })
  })

  it.each([
    '',
    'x',
    '1.2.3.4 - - [32/Aug/1995:00:00:01 -0400] "GET / HTTP/1.0" 200 1',
    '1.2.3.4 - - [31/Jun/1995:00:00:01 -0400] "GET / HTTP/1.0" 200 1',
    '1.2.3.4 - - [01/Aug/1995:24:00:01 -0400] "GET / HTTP/1.0" 200 1',
    '1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] "GET / HTTP/1.0',
  ])('is none: %j', (line) => {
    expect(parseTextLine(line)).toBeUndefined()
  })
})

describe('a JSON line', () => {
  const at = Date.UTC(2026, 2, 7, 12, 0, 1, 250)
  it.each([
    [
      'nginx',
      { time_iso8601: '2026-03-07T12:00:01+00:00', remote_addr: '1.2.3.4', request: 'POST /p HTTP/1.1', http_user_agent: 'curl' },
      at - 250,
    ],
    [
      'nginx msec',
      { msec: '1772884801.250', remote_addr: '1.2.3.4', request_method: 'POST', request_uri: '/p', http_user_agent: 'curl' },
      at,
    ],
    ['Caddy', { ts: at / 1000, request: { remote_ip: '1.2.3.4', method: 'POST', uri: '/p', headers: { 'User-Agent': ['curl'] } } }, at],
    ['pino-http', { time: at, req: { method: 'POST', url: '/p', remoteAddress: '1.2.3.4', headers: { 'user-agent': 'curl' } } }, at],
    [
      'Traefik',
      {
        StartUTC: 'x',
        time: '2026-03-07T12:00:01.250Z',
        ClientHost: '1.2.3.4',
        RequestMethod: 'POST',
        RequestPath: '/p',
        user_agent: 'curl',
      },
      at,
    ],
  ])('of %s', (_, value, time) => {
    const record = parseJsonLine(JSON.stringify(value))
    expect(record).toMatchObject({ time, client: '1.2.3.4', method: 'POST', target: '/p', valid: true, coarse: time % 1000 === 0 })
    expect(record?.field('user-agent')).toBe('curl')
  })

  it.each([
    '{',
    '[]',
    '1',
    '{}',
    '{"time":"never","ip":"1.2.3.4"}',
    '{"time":1772884801}',
    '{"time":-1,"ip":"x"}',
    '{"time":1e300,"ip":"x"}',
    '{"time":"+275760-09-13T00:00:00Z","ip":"x"}',
  ])('is none: %s', (line) => {
    expect(parseJsonLine(line)).toBeUndefined()
  })

  it('has no field of Object.prototype', () => {
    const record = parseJsonLine('{"time":1772884801,"ip":"1.2.3.4","__proto__":{"tenant":"x"}}')
    expect([record?.field('constructor'), record?.field('tenant')]).toEqual([undefined, undefined])
  })
})

describe('how long a request took', () => {
  const text = '1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] "GET /m HTTP/1.1" 200 1'
  it.each([
    [`${text} "-" "curl" 0.003 "upstream" 0.001`, 3],
    [`${text} "-" "curl" "203.0.113.9" 1.250`, 1250],
    [`${text} "-" "curl" rt=0.014 uct="0.001"`, 14],
    [`${text} "-" "curl" request_time="0.014"`, 14],
    // Text from clients is not a duration.
    [`${text} "-" "bot 0.003" 0.500`, 500],
    [`${text} "0.001" "0.002"`, undefined],
    [`${text} "-" "curl" 12`, undefined],
    [text, undefined],
  ])('in %s', (line, took) => {
    expect(parseTextLine(line)?.duration).toBe(took)
  })

  it.each([
    [{ request_time: '0.25' }, 250],
    [{ request_time: 0 }, 0],
    [{ responseTime: 12 }, 12],
    [{ latency_ms: '7.5' }, 7.5],
    [{ duration: 0.125 }, 125],
    [{ Duration: 1_500_000 }, 1.5],
    [{ duration: '1m2.5s' }, 62_500],
    [{ duration: '12ms' }, 12],
    [{ duration: '-1' }, undefined],
    [{ duration: 'soon' }, undefined],
    [{ request_time: -1 }, undefined],
    [{}, undefined],
  ])('in %j', (fields, took) => {
    expect(parseJsonLine(JSON.stringify({ time: 1.7e9, ip: '192.0.2.1', ...fields }))?.duration).toBe(took)
  })
})
