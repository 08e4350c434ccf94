import { describe, expect, it } from 'vitest'
import { type ClientOptions, Clients } from '../../src/log/client.ts'
import { type LineCounts, LineReader, noLines } from '../../src/log/line-reader.ts'
import type { LogRecord } from '../../src/log/record.ts'

function read(
  log: string | Buffer,
  options?: ClientOptions,
): { readonly records: readonly LogRecord[]; readonly counts: LineCounts; readonly clients: Clients } {
  const [records, counts, clients] = [[] as LogRecord[], noLines(), new Clients(options)]
  const reader = new LineReader('test.log', counts, clients)
  reader.write(Buffer.from(log), records)
  reader.end(records)
  return { records, counts, clients }
}

const TIME = Date.UTC(2026, 2, 7, 12)
const ISO = '2026-03-07T12:00:00Z'
const CLIENT = '203.0.113.7'
const REST = '[07/Mar/2026:12:00:00 +0000] "GET /a?b HTTP/1.1" 200 512 "-" "curl/8.5.0"'
const CLF = `${CLIENT} - - ${REST}`
const json = JSON.stringify
const NGINX = { time_iso8601: ISO, remote_addr: CLIENT, request: 'GET /a?b HTTP/1.1' }

/** The same request in the log formats of different programs. */
const FORMS: readonly (readonly [form: string, line: string, client?: string])[] = [
  ['the Combined Log Format', CLF],
  ['a virtual host with its port', `www.example.org:443 ${CLF}`],
  ['a virtual host', `www.example.org ${CLF}`],
  ['docker compose', `nginx-1  | ${CLF}`],
  ['docker compose in colours', `\x1b[36mnginx-1  | \x1b[0m${CLF}`],
  ['Kubernetes (CRI)', `2026-03-07T12:00:05.123456789Z stdout F ${CLF}`],
  ['kubectl logs --timestamps', `2026-03-07T12:00:05.123456789Z ${CLF}`],
  ['kubectl logs --prefix', `[pod/nginx-7c5/nginx] ${CLF}`],
  ['syslog (RFC 3164)', `Mar  7 12:00:05 web1 nginx: ${CLF}`],
  ['syslog of a host that is an address', `<190>Mar  7 12:00:05 10.0.0.9 nginx: ${CLF}`],
  ['syslog (RFC 5424)', `<190>1 2026-03-07T12:00:05Z web1 nginx - - - ${CLF}`],
  ['journald', `Mar 07 12:00:05 web1 nginx[812]: ${CLF}`],
  ['Docker JSON', json({ log: `${CLF}\n`, stream: 'stdout', time: '2026-03-07T12:00:05.1Z' })],
  ['Docker JSON of a line in JSON', json({ log: `${json(NGINX)}\n`, stream: 'stdout', time: '2026-03-07T12:00:05.1Z' })],
  ['journald JSON', json({ MESSAGE: CLF, __REALTIME_TIMESTAMP: '1772884805000000', _HOSTNAME: 'web1' })],
  ['Filebeat', json({ '@timestamp': '2026-03-07T12:00:05Z', message: CLF, host: { ip: ['10.0.0.9'] } })],
  ['JSON behind docker compose', `nginx-1  | ${json(NGINX)}`],
  ['JSON behind Kubernetes (CRI)', `2026-03-07T12:00:05Z stdout F ${json(NGINX)}`],
  ['a list of addresses', `${CLIENT}, 10.0.0.1 - - ${REST}`],
  ['a list without blanks', `${CLIENT},10.0.0.1,127.0.0.1 - - ${REST}`],
  ['a list behind a prefix', `nginx-1 | ${CLIENT}, 10.0.0.1 - - ${REST}`],
  ['a list with an unknown part', `unknown, ${CLIENT} - - ${REST}`],
  ['a port', `${CLIENT}:51234 - - ${REST}`],
  ['a user with blanks and an address', `${CLIENT} - 198.51.100.1 - x ${REST}`],
  ['an identity', `${CLIENT} ident frank ${REST}`],
  ['no identity and no user', `${CLIENT} ${REST}`],
  ['old ingress-nginx', `${CLIENT} - [${CLIENT}] - - ${REST}`],
  ['milliseconds', CLF.replace('12:00:00 +', '12:00:00.000 +')],
  ['$time_iso8601', CLF.replace('07/Mar/2026:12:00:00 +0000', '2026-03-07T13:00:00+01:00')],
  ['CRLF', `${CLF}\r`],
  ['a byte order mark', `\ufeff${CLF}`],
  ['JSON behind a byte order mark', `\ufeff${json(NGINX)}`],
  ['zeros of a log that was cut meanwhile', `${'\0'.repeat(300_000)}${CLF}`],
  ['IPv6', `2001:db8::1 - - ${REST}`, '2001:db8::1'],
  ['IPv6 with a port', `[2001:db8::1]:51234 - - ${REST}`, '2001:db8::1'],
  ['IPv6 with a port, as CloudFront writes it', `2001:db8::1:46532 - - ${REST}`, '2001:db8::1'],
  ['a whole IPv6 address with a port', `2001:db8:1:2:3:4:5:6:443 - - ${REST}`, '2001:db8:1:2:3:4:5:6'],
  ['IPv6 of this host', `[::1] - - ${REST}`, '::1'],
  ['IPv6 behind a prefix', `nginx-1 | fe80::1%eth0 - - ${REST}`, 'fe80::1%eth0'],
  ['a name of a host', `client.example - - ${REST}`, 'client.example'],
  ['nginx JSON', json(NGINX)],
  ['a list in JSON', json({ time: ISO, ip: `${CLIENT}, 10.0.0.4`, method: 'GET', url: '/a?b' })],
  ['a time without a zone, which is UTC', json({ time: '2026-03-07 12:00:00', ip: CLIENT, method: 'GET', url: '/a?b' })],
  ['Caddy', json({ ts: TIME / 1000, request: { remote_ip: '10.0.0.1', client_ip: CLIENT, method: 'GET', uri: '/a?b' } })],
  ['Traefik', json({ ClientAddr: `${CLIENT}:5123`, ClientHost: CLIENT, RequestMethod: 'GET', RequestPath: '/a?b', time: ISO })],
  ['Fastify', json({ level: 30, time: TIME, hostname: 'web1', req: { method: 'GET', url: '/a?b', remoteAddress: CLIENT, remotePort: 5 } })],
  [
    'Envoy and Istio',
    json({ start_time: ISO, downstream_remote_address: `${CLIENT}:5123`, method: 'GET', path: '/a?b', upstream_host: '10.0.0.9:80' }),
  ],
  ['ECS', json({ '@timestamp': ISO, client: { ip: CLIENT }, http: { method: 'GET' }, path: '/a?b' })],
  [
    'Google Cloud',
    json({ timestamp: ISO, httpRequest: { requestMethod: 'GET', requestUrl: '/a?b', remoteIp: CLIENT, serverIp: '10.0.0.9' } }),
  ],
  ['API Gateway', json({ requestTime: '07/Mar/2026:12:00:00 +0000', ip: CLIENT, httpMethod: 'GET', path: '/a?b' })],
]

describe('a line in the form of', () => {
  it.each(FORMS)('%s is read', (_, line, client = CLIENT) => {
    const { records, counts } = read(`${line}\n`)
    expect(counts).toMatchObject({ lines: 1, records: 1, unreadable: 0, unknown: 0 })
    expect(records).toMatchObject([{ client, time: TIME, method: 'GET', target: '/a?b', valid: true }])
  })
})

/** Requests with an unknown client or time. The replay must not count them by a guess. */
const UNKNOWN: readonly (readonly [what: string, line: string, why: string])[] = [
  ['no client', `- - - ${REST}`, 'client'],
  ['an unknown client', `unknown - - ${REST}`, 'client'],
  ['a Unix socket', `unix: - - ${REST}`, 'client'],
  ['a virtual host and no client', `www.example.org:443 - - ${REST}`, 'client'],
  ['a virtual host and an empty client', `www.example.org - - - ${REST}`, 'client'],
  ['a virtual host and the name of a host', `www.example.org client.example - - ${REST}`, 'client'],
  ['a virtual host that is an address', `10.0.0.9 ${CLF}`, 'client'],
  ['syslog that ends with the address of a host', `Mar  7 12:00:05 10.0.0.9 ${CLF}`, 'client'],
  ['syslog (RFC 5424) of a host that is an address, without a program', `<190>1 ${ISO} 10.0.0.9 - - - - ${CLF}`, 'client'],
  ['the address of a client behind its name, or a user who is called so', `client.example - ${CLF}`, 'client'],
  ['two public addresses in a list: the first may be forged', `198.51.100.1, ${CLIENT}, 10.0.0.1 - - ${REST}`, 'client'],
  ['two public addresses of a list in JSON', json({ time: ISO, ip: `198.51.100.1, ${CLIENT}`, method: 'GET', url: '/' }), 'client'],
  ['JSON without a client', json({ time: ISO, method: 'GET', url: '/', client: 'mobile-app' }), 'client'],
  ['JSON without a time', json({ remote_addr: CLIENT, request: 'GET / HTTP/1.1' }), 'time'],
  ['JSON with a time without a date', json({ time: '12:00:00', remote_addr: CLIENT, method: 'GET', uri: '/' }), 'time'],
  ['a time without a zone', CLF.replace(' +0000', ''), 'form'],
  ['no client at all (Envoy)', `[${ISO}] "GET /a HTTP/1.1" 200 - 0 512 3 - "${CLIENT}" "curl" "www.example.org"`, 'client'],
  ['an AWS load balancer', `h2 ${ISO} app/x ${CLIENT}:2817 10.0.0.1:80 0.0 0.0 0.0 200 200 34 36 "GET https://x/ HTTP/2.0" "curl"`, 'form'],
  ['more than 128 KiB', `${CLF}${'x'.repeat(140_000)}`, 'length'],
]

describe('a request with', () => {
  it.each(UNKNOWN)('%s is not counted by a guess', (_, line, why) => {
    const { records, counts } = read(`${CLF}\n\n${line}\n`)
    expect(records).toMatchObject([{ client: CLIENT }])
    expect(counts).toMatchObject({ lines: 2, records: 1, unreadable: 1, unknown: 1, firstUnknown: { file: 'test.log', line: 3, why } })
  })
})

describe('a line that shows no request', () => {
  it.each([
    ['a program that starts', 'nginx-1 | /docker-entrypoint.sh: Configuration complete; ready for start up'],
    ['an error of nginx', `2026/03/07 12:00:00 [error] 29#29: *1 open() failed, client: ${CLIENT}, request: "GET /x HTTP/1.1", host: "x"`],
    ['an application', json({ level: 30, time: TIME, msg: 'listening', path: '/var/run' })],
    ['the end of a request (Fastify)', json({ level: 30, time: TIME, reqId: 'req-1', res: { statusCode: 200 }, responseTime: 3.2 })],
    ['zeros and others', '\0\0x\0'],
  ])('is counted as unreadable: %s', (_, line) => {
    expect(read(`${line}\n`).counts).toMatchObject({ lines: 1, records: 0, unreadable: 1, unknown: 0 })
  })

  it('is not counted if it is blank', () => {
    expect(read('\n \r\n\t\n\n'.repeat(3_600)).counts).toMatchObject({ lines: 0, unreadable: 0 })
  })
})

describe('the field of the client', () => {
  const forwarded = (field: string) => `10.0.0.2 - - ${REST} "${field}"`
  const headers = { 'X-Forwarded-For': `198.51.100.1, ${CLIENT}`, 'X-Real-IP': CLIENT }
  const pino = json({ time: TIME, req: { method: 'GET', url: '/a?b', remoteAddress: '10.0.0.2', headers } })
  it.each<readonly [what: string, line: string, options: ClientOptions, client: string | undefined]>([
    ['nginx main', forwarded(CLIENT), { field: 'http_x_forwarded_for' }, CLIENT],
    ['nginx main by the name of the header', forwarded(CLIENT), { field: 'x-forwarded-for' }, CLIENT],
    ['nginx main and a time before it', `10.0.0.2 - - ${REST} 0.003 "${CLIENT}"`, { field: 'x-forwarded-for' }, CLIENT],
    ['nginx main and an upstream behind it', `${forwarded(CLIENT)} ua="10.0.0.9:80"`, { field: 'x-forwarded-for' }, CLIENT],
    ['a list to which a private proxy has added its client', forwarded(`${CLIENT}, 10.0.0.1`), { field: 'x-forwarded-for' }, CLIENT],
    ['a forged list', forwarded(`198.51.100.1, ${CLIENT}`), { field: 'x-forwarded-for' }, undefined],
    ['a forged list, one proxy', forwarded(`198.51.100.1, ${CLIENT}`), { field: 'x-forwarded-for', proxies: 1 }, CLIENT],
    ['a CDN, two proxies', forwarded(`192.0.2.6, ${CLIENT}, 198.51.100.1`), { field: 'x-forwarded-for', proxies: 2 }, CLIENT],
    ['a list of fewer addresses than proxies', forwarded(CLIENT), { field: 'x-forwarded-for', proxies: 3 }, CLIENT],
    ['clients within', forwarded('10.1.1.1, 10.0.0.1'), { field: 'x-forwarded-for' }, '10.1.1.1'],
    [
      'Forwarded (RFC 7239)',
      json({ ...NGINX, http_forwarded: 'for="[2001:db8::1]:4711";proto=https' }),
      { field: 'forwarded' },
      '2001:db8::1',
    ],
    ['an empty field: who connected counts', forwarded('-'), { field: 'x-forwarded-for' }, '10.0.0.2'],
    ['a word before the time', `10.0.0.9 ${CLF}`, { field: '2' }, CLIENT],
    ['a word behind a prefix', `Mar  7 12:00:05 10.0.0.9 ${CLF}`, { field: '5' }, CLIENT],
    ['a name of a host behind a prefix', `nginx-1 | client.example - - ${REST}`, { field: '3' }, 'client.example'],
    ['pino-http', pino, { field: 'req.headers.x-real-ip' }, CLIENT],
    ['pino-http by the header', pino, { field: 'x-forwarded-for', proxies: 1 }, CLIENT],
    ['pino-http by the name that nginx has for the header', pino, { field: 'http_x_real_ip' }, CLIENT],
    ['nginx and a named field before it', `10.0.0.2 - - ${REST} rt="0.003" "${CLIENT}"`, { field: 'x-forwarded-for' }, CLIENT],
    ['nginx and a field without an end', `${forwarded('-')} "${CLIENT}`, { field: 'x-forwarded-for' }, '10.0.0.2'],
    ['a field that is not usual', json({ time: ISO, method: 'GET', path: '/a?b', edge: { peer: CLIENT } }), { field: 'edge.peer' }, CLIENT],
  ])('is read: %s', (_, line, options, client) => {
    const { records, counts } = read(line, options)
    expect(records.map((one) => one.client)).toEqual(client === undefined ? [] : [client])
    expect(counts.unknown).toBe(client === undefined ? 1 : 0)
  })

  it('is proposed where nearly all requests come from a few private addresses and name others', () => {
    const balanced = [...Array(95).keys()].map((i) =>
      forwarded(`203.0.113.${i}`).replace('10.0.0.2', i % 2 === 0 ? '10.0.0.2' : '::ffff:10.0.0.3'),
    )
    const { clients } = read([...balanced, ...Array(5).fill(CLF)].join('\n'))
    expect(clients.summary.balancers).toEqual({
      requests: 95,
      of: 100,
      addresses: ['10.0.0.2', '::ffff:10.0.0.3'],
      field: 'x-forwarded-for',
    })
    const direct = [forwarded('-'), forwarded('10.0.0.2'), CLF, `${CLF} "198.51.100.1"`]
    for (const line of direct) expect(read(`${line}\n`.repeat(100)).clients.summary.balancers).toBeUndefined()
    const within = [...Array(100).keys()].map((i) => forwarded(CLIENT).replace('10.0.0.2', `10.0.1.${i}`))
    expect(read(within.join('\n')).clients.summary.balancers).toBeUndefined()
  })
})

it('a quoted field without an end is looked through once', () => {
  const looked = (quotes: number, times: number) => {
    const [record] = read(`${CLF} "${'\\"'.repeat(quotes)}`).records
    const { user } = process.cpuUsage()
    for (let i = 0; i < times; i++) record?.field('x-forwarded-for')
    return process.cpuUsage().user - user
  }
  // The same number of characters. If every quote started a new search to the end, the long line would take 20 times as long.
  const short = looked(2_000, 30)
  expect(looked(40_000, 1)).toBeLessThan(8 * short + 100_000)
})

describe('how long a request took', () => {
  const span = (fields: object) => read(json({ time: ISO, RequestMethod: 'GET', RequestPath: '/', ...fields })).records[0]?.duration
  it.each([
    ['Traefik: a redirection, in nanoseconds', { ClientHost: CLIENT, Duration: 51_000 }, 0.051],
    ['Traefik: an answer of a server', { ClientHost: CLIENT, Duration: 12_000_000 }, 12],
    ['Caddy, in seconds', { client_ip: CLIENT, duration: 0.00005 }, 0.05],
    ['a span of Go', { ClientHost: CLIENT, Duration: '51µs' }, 0.051],
  ])('is read: %s', (_, fields, milliseconds) => {
    expect(span(fields)).toBeCloseTo(milliseconds, 9)
  })
})

describe('a log in UTF-16', () => {
  const text = Buffer.from(`${CLF}\n`, 'utf16le')
  it.each([
    ['with a byte order mark', Buffer.from(`\ufeff${CLF}\n`, 'utf16le')],
    ['with a byte order mark, the other byte first', Buffer.from(`\ufeff${CLF}\n`, 'utf16le').swap16()],
    ['without one', text],
    ['without one, the other byte first', Buffer.from(text).swap16()],
  ])('%s is rejected, with what to do', (_, log) => {
    expect(() => read(log)).toThrow('"test.log" is in UTF-16. Convert it: iconv')
  })
})

describe('the status of the answer is read', () => {
  const base = { time: ISO, remote_addr: CLIENT, method: 'GET', uri: '/' }
  it.each([
    ['text', CLF, '200'],
    ['text without a status', CLF.replace(' 200 512', ' - -'), undefined],
    ['text whose request imitates one', CLF.replace('/a?b', '/a\\" 404 1').replace(' 200 ', ' 301 '), '301'],
    ['nginx and Caddy', json({ ...base, status: 404 }), '404'],
    ['Traefik', json({ ...base, DownstreamStatus: 502 }), '502'],
    ['Envoy', json({ ...base, response_code: 429 }), '429'],
    ['pino-http', json({ ...base, res: { statusCode: 204 } }), '204'],
    ['no number', json({ ...base, status: 'fine' }), undefined],
  ])('from %s', (_, text, status) => {
    const [record] = read(`${text}\n`).records
    expect([record?.client, record?.status]).toEqual([CLIENT, status])
  })
})
