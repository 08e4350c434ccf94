import { Readable, Writable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { PlanReport } from '../src/commands/plan-report.ts'
import { run } from '../src/program.ts'
import { file, line, rules, START, weir } from './weir.ts'

/** Two minutes of traffic: a flood from one client, and other clients within 10 per minute. */
function traffic(): string {
  let log = ''
  for (let second = 0; second < 120; second++) {
    for (let i = 0; i < 3; i++) log += line(second, '192.0.2.66')
    if (second % 10 === 0) for (const client of ['198.51.100.1', '198.51.100.2', '203.0.113.9']) log += line(second, client)
  }
  return log
}

const limited = rules('rules.json', {})
const log = file('access.log', traffic())

async function planned(...args: string[]): Promise<PlanReport> {
  const { out, err } = await weir(['plan', ...args, '--format', 'json'])
  expect(err).toBe('')
  return JSON.parse(out)
}

describe('a plan', () => {
  it('says who would have been rejected, how often, and by which policy', async () => {
    const { log: read, plan, nodes } = await planned(log, '--rules', limited)
    expect(read).toMatchObject({ lines: 396, records: 396, unreadable: 0, late: 0 })
    expect(nodes).toBe(3)
    // 10 of 180 requests a minute are allowed, plus the overshoot before the processes have synced.
    const [policy] = plan.policies
    expect(policy).toMatchObject({ name: 'client', limit: 10, interval: 60_000, algorithm: 'fixedWindow', coordination: 'background' })
    expect(policy).toMatchObject({ requests: 396, exactRejected: 340, rejectedKeys: 1 })
    expect(policy?.top).toEqual([{ key: '192.0.2.66', requests: 360, rejected: policy?.rejected, exactRejected: 340 }])
    expect(plan.allowed + plan.rejected).toBe(396)
    expect(plan.allowedBeyond).toBe(policy?.overshoot.units)
    expect(plan.rejectedEarly).toBe(0)
    expect(340 - plan.rejected).toBe(plan.allowedBeyond)
    expect(plan.rejected).toBeGreaterThan(330)
  })

  it('says when', async () => {
    const { plan } = await planned(log, '--rules', limited)
    const { parts, width } = plan.series
    expect(width).toBe(1000)
    expect(parts[0]?.from).toBe(START)
    expect(parts.reduce((sum, { requests }) => sum + requests, 0)).toBe(396)
    // The key is within its limit first, and again at the start of the second minute.
    expect(parts.slice(0, 2).every(({ rejected }) => rejected === 0)).toBe(true)
    expect(parts[30]?.rejected).toBe(3)
    expect(parts[60]?.rejected).toBe(0)
  })

  it.each(['central', 'leased'])('rejects just what an exact count does with %s', async (coordination) => {
    const { plan } = await planned(log, '--rules', limited, '--coordination', coordination)
    expect(plan).toMatchObject({ rejected: 340, allowedBeyond: 0, rejectedEarly: 0 })
    expect(plan.policies[0]?.coordination).toBe(coordination)
    if (coordination === 'central') expect(plan.store.decisions).toBeGreaterThan(0)
  })

  it('allows more when the store is farther away, and needs few operations', async () => {
    const burst = file('burst.log', Array.from({ length: 4000 }, (_, i) => line(i / 1000, '192.0.2.66')).join(''))
    const hundred = rules('hundred.json', { limit: 100 })
    const near = await planned(burst, '--rules', hundred, '--nodes', '8')
    const far = await planned(burst, '--rules', hundred, '--nodes', '8', '--round-trip', '200ms')
    expect(far.plan.policies[0]?.overshoot.worst).toBeGreaterThan(near.plan.policies[0]?.overshoot.worst ?? 1)
    expect(far.plan.exactRejected).toBe(3900)
    expect(near.plan.store.keyWrites).toBeLessThan(400)
  })

  it('says the same each time', async () => {
    expect(await planned(log, '--rules', limited)).toEqual({ ...(await planned(log, '--rules', limited)), plan: expect.anything() })
    const [one, two] = [await planned(log, '--rules', limited), await planned(log, '--rules', limited)]
    expect({ ...one.plan, memory: 0 }).toEqual({ ...two.plan, memory: 0 })
  })

  it('tells how much memory a key takes', async () => {
    const { plan } = await planned(log, '--rules', limited)
    expect(plan.policies[0]?.keysHeld).toBeGreaterThanOrEqual(1)
    expect(plan.memory.bytesPerKey).toBeGreaterThan(30)
    expect(plan.memory.bytesPerKey).toBeLessThan(2000)
  })

  it('tells host names apart', async () => {
    const text = ['a.example', 'b.example', 'a.example', 'a.example'].map((name, second) => line(second, name)).join('')
    const { plan } = await planned(file('names.log', text), '--rules', rules('two.json', { limit: 2 }), '--nodes', '1')
    expect(plan.policies[0]?.top).toEqual([{ key: 'a.example', requests: 3, rejected: 1, exactRejected: 1 }])
  })

  it('reads addresses as adapters do: whatever their spelling and port, from the client of a log or from a header', async () => {
    const clients = ['192.0.2.7', '192.0.2.7:5001', '::ffff:192.0.2.7', '2001:db8:1:2::1', '[2001:DB8:1:2::2]:443']
    const lines = clients.map((client, second) =>
      JSON.stringify({ time: START + second * 1000, remote_addr: client, 'cf-connecting-ip': client, uri: '/' }),
    )
    const log = file('spellings.jsonl', `${lines.join('\n')}\n`)
    for (const key of ['ip', { header: 'cf-connecting-ip', address: true }]) {
      const { plan } = await planned(log, '--rules', rules('one.json', { key, limit: 1 }), '--nodes', '1')
      expect(plan.policies[0]?.top).toEqual([
        { key: '192.0.2.7', requests: 3, rejected: 2, exactRejected: 2 },
        { key: '2001:db8:1:2::/64', requests: 2, rejected: 1, exactRejected: 1 },
      ])
    }
  })

  it('goes by paths, headers and fields of the log', async () => {
    const json = [0, 1, 2, 3].map((second) =>
      JSON.stringify({ time: START + second * 1000, remote_addr: '192.0.2.1', tenant: 'acme', uri: second < 3 ? '/api/x' : '/' }),
    )
    const tenants = rules('tenants.json', { key: 'tenant', match: ['/api/*rest'], limit: 2 })
    const { plan } = await planned(file('access.jsonl', `${json.join('\n')}\n`), '--rules', tenants, '--nodes', '1')
    expect(plan).toMatchObject({ requests: 3, rejected: 1, uncounted: 1 })
    expect(plan.policies[0]?.top[0]?.key).toBe('acme')
    expect(plan.notes.join()).toContain('The field "tenant"')
  })

  it('begins anew after a silence in which all has expired, and counts days of a calendar', async () => {
    const text = [0, 1, 2, 86_400 * 40, 86_400 * 40 + 1].map((second) => line(second, '192.0.2.1')).join('')
    const { plan } = await planned(
      file('sparse.log', text),
      '--rules',
      rules('daily.json', { limit: 2, interval: { calendar: 'day' } }),
      '--nodes',
      '1',
    )
    expect(plan).toMatchObject({ requests: 5, rejected: 1, exactRejected: 1 })
  })

  it('gives keys their own limits until the time that they say, by the time of the log', async () => {
    const policies = [{ name: 'client', key: 'ip', limit: 10, interval: '1m' }]
    const until = new Date(START + 60_000).toISOString()
    const overrides = [
      { policy: 'client', key: '192.0.2.66', limit: 100, until },
      { policy: 'client', key: '203.0.113.9', limit: 0 },
    ]
    const { plan } = await planned(
      log,
      '--rules',
      file('overrides.json', JSON.stringify({ version: 1, policies, overrides })),
      '--nodes',
      '1',
    )
    // 80 and then 170 requests of the first key are rejected, and all 12 of the second.
    expect(plan).toMatchObject({ rejected: 262, exactRejected: 262 })
  })
})

describe('a plan of requests in flight', () => {
  const slots = { name: 'slots', key: 'ip', algorithm: 'concurrency', coordination: 'leased', limit: 2 }
  const document = (...policies: readonly object[]) => JSON.stringify({ version: 1, policies })

  /** Four requests per second. With a duration of a second, four are in flight at once. */
  const took = (seconds: number | undefined) =>
    Array.from({ length: 40 }, (_, i) =>
      JSON.stringify({ time: START + i * 250, remote_addr: '192.0.2.1', ...(seconds !== undefined && { request_time: seconds }) }),
    ).join('\n')

  it.each(['leased', 'local'])('goes by how long requests took: %s', async (coordination) => {
    const held = file('slots.json', document({ ...slots, coordination }))
    const { plan } = await planned(file('slow.jsonl', took(0.9)), '--rules', held, '--nodes', '1')
    // Two requests are allowed each second, because the previous two have ended.
    expect(plan).toMatchObject({ requests: 40, rejected: 20, exactRejected: 20 })
    const [policy] = plan.policies
    expect(policy).toMatchObject({ interval: 0, limit: 2, overshoot: { units: 0, missed: 0, worst: 0 } })
    const { plan: fast } = await planned(file('fast.jsonl', took(0.4)), '--rules', held, '--nodes', '1')
    expect(fast.rejected).toBe(0)
    expect((await weir(['plan', file('slow.jsonl', took(0.9)), '--rules', held])).out).toContain('2 in flight, concurrency')
  })

  it('tells how many too many are in flight where each node counts for itself', async () => {
    const { plan } = await planned(
      file('slow.jsonl', took(5)),
      '--rules',
      file('local.json', document({ ...slots, coordination: 'local' })),
      '--nodes',
      '4',
    )
    const [policy] = plan.policies
    // Up to eight requests are in flight, although the limit is two.
    expect(policy?.overshoot.worst).toBeGreaterThanOrEqual(1)
    expect(policy?.overshoot.worst).toBeLessThanOrEqual(3)
    expect(plan.allowed).toBeGreaterThan(40 - plan.exactRejected)
  })

  it('frees all slots in a silence, and holds those that last through it', async () => {
    const at = (second: number, seconds: number) => JSON.stringify({ time: START + second * 1000, ip: '192.0.2.1', request_time: seconds })
    const text = [at(0, 4_000), at(1, 1), at(3_000, 1), at(3_000.5, 1), at(9_000, 1), at(9_000.5, 1), at(9_000.7, 1)].join('\n')
    const long = { ...slots, algorithm: { name: 'concurrency', maxDuration: '2h' } }
    const { plan } = await planned(file('long.jsonl', text), '--rules', file('long.json', document(long)), '--nodes', '1')
    // One request is rejected beside the long one, and later one of three.
    expect(plan).toMatchObject({ requests: 7, rejected: 2 })
  })

  it('says so where the log does not tell, of all requests or of some', async () => {
    const both = file('both.json', document({ limit: 1, interval: '1h', key: 'ip' }, slots))
    const { plan } = await planned(log, '--rules', both)
    expect(plan.policies.map(({ name }) => name)).toEqual(['default'])
    expect(plan.notes.join()).toContain('"slots" is left out')
    expect(plan.notes.join()).toContain('$request_time')
    const { code, err } = await weir(['plan', log, '--rules', file('only.json', document(slots))])
    expect([code, err]).toEqual([2, expect.stringContaining('$request_time')])
    const some = await planned(file('some.jsonl', `${took(1)}\n${took(undefined)}`), '--rules', both)
    expect(some.plan.notes.join()).toContain('no duration for 40 of 80 requests')
    expect((await planned(file('told.jsonl', took(1)), '--rules', both)).plan.notes.join()).not.toContain('duration')
  })

  it('keeps their coordination where slots know no other', async () => {
    const held = file('kept.json', document({ ...slots, coordination: 'local' }, { key: 'ip', limit: 5, interval: '1h' }))
    const { plan } = await planned(file('slow.jsonl', took(1)), '--rules', held, '--coordination', 'central')
    expect(plan.policies.map(({ coordination }) => coordination)).toEqual(['local', 'central'])
    expect(plan.notes.join()).toContain('"slots" keeps its coordination')
  })
})

describe('a plan of rules to come', () => {
  const policies = [{ name: 'client', key: 'ip', limit: 10, interval: '1m' }]
  const overrides = [{ policy: 'client', key: '203.0.113.9', limit: 0 }]
  const next = { policies: [{ name: 'client', key: 'ip', limit: 5, interval: '1m' }], overrides }
  const both = file('next.json', JSON.stringify({ version: 4, policies, next }))

  it('compares candidate rules with the current ones of the same document', async () => {
    const { code, out } = await weir(['plan', log, '--rules', both, '--next', '--nodes', '1', '--format', 'json'])
    const { plan, against, changes }: PlanReport = JSON.parse(out)
    expect(code).toBe(3)
    expect([plan.rules, against?.rules]).toEqual([`${both}, next`, both])
    // Rejects 10 more requests of one client, one more per minute of two other clients, and all 12 of the third.
    expect([plan.rejected, against?.rejected]).toEqual([366, 340])
    expect(changes?.rejectedNow).toMatchObject({ requests: 26, keys: 4 })
  })

  it('leaves them out unless asked, and says so', async () => {
    const { plan } = await planned(log, '--rules', both, '--nodes', '1')
    expect(plan.rejected).toBe(340)
    expect(plan.notes.join()).toContain('--next')
  })

  it.each([
    [['--rules', limited, '--next'], 'has no candidate rules'],
    [['--rules', both, '--next', '--against', limited], 'Use --next or --against'],
  ])('ends with 2 where it can not be: %j', async (args, said) => {
    const { code, err } = await weir(['plan', log, ...args])
    expect(code).toBe(2)
    expect(err).toContain(said)
  })
})

describe('a plan against other rules', () => {
  it('lists the requests that are decided differently, and ends with 3 if stricter, 4 if looser', async () => {
    const stricter = rules('stricter.json', { limit: 5 })
    const { code, out } = await weir(['plan', log, '--rules', stricter, '--against', limited, '--nodes', '1', '--format', 'json'])
    expect(code).toBe(3)
    const { changes, against, plan }: PlanReport = JSON.parse(out)
    expect([plan.rejected, against?.rejected]).toEqual([356, 340])
    // In two minutes: five more rejections per minute for the first client, and one more per minute for each other client.
    expect(changes?.rejectedNow).toMatchObject({ requests: 16, keys: 4 })
    expect(changes?.rejectedNow.top[0]).toEqual({ policy: 'client', key: '192.0.2.66', requests: 10 })
    expect(changes?.allowedNow).toMatchObject({ requests: 0, keys: 0, top: [] })
    const back = await weir(['plan', log, '--rules', limited, '--against', stricter, '--nodes', '1'])
    expect(back.code).toBe(4)
    expect(back.out).toMatch(/^Looser: allows 16 \(4\.0 %\) of the requests, 4 keys, that .* rejects\n340 of 396/)
    expect(back.out).toContain('Allowed now, rejected before: 16 of 396 requests (4.0 %), 4 keys')
  })

  it('ends with 0 where nothing changes', async () => {
    expect((await weir(['plan', log, '--rules', limited, '--against', limited, '--format', 'json'])).code).toBe(0)
  })
})

describe('what is shown', () => {
  it('is a table and charts, without colours in a pipe or with NO_COLOR', async () => {
    const args = ['plan', log, '--rules', limited]
    const { code, out, err } = await weir(args)
    expect([code, err]).toEqual([0, ''])
    expect(out).toContain('client  10 per 1 min, fixedWindow, background')
    expect(out).toMatch(/│ client +│ +396 │ 340 \(85\.9 %\) │ +1 of 4 │/)
    expect(out).toMatch(/│ 192\.0\.2\.66 │ +360 │ 340 \(94\.4 %\) │/)
    expect(out).toMatch(/▃|▅|█/)
    expect(out).not.toContain('\x1b')
    expect((await weir(args, { tty: true, env: { NO_COLOR: '1' } })).out).not.toContain('\x1b')
    expect((await weir(args, { tty: true })).out).toContain('\x1b[')
  })

  it('holds no control characters of a log', async () => {
    const key = '\x1b]0;owned\x07\x9b31m\u202eevil'
    const hostile = Buffer.from(`${line(0, 'x').replace('x', key).repeat(30)}\x1b[2Jno record\x07\n`)
    const args = ['plan', file('hostile.log', hostile), '--rules', limited]
    const { out } = await weir(args)
    expect(out).toContain('\\x1b]0;owned\\x07')
    expect(out).toContain('\\x1b[2Jno record')
    const data = await weir([...args, '--format', 'json'])
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
    for (const text of [out, data.out]) expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/)
    // JSON keeps the whole key.
    const { plan }: PlanReport = JSON.parse(data.out)
    expect(plan.policies[0]?.top[0]?.key).toBe(Buffer.from(key).toString('latin1'))
  })
})

describe('logs', () => {
  it('may be several, of any form, compressed, and from the standard input', async () => {
    const lines = traffic().split(/(?<=\n)/)
    const [even, odd] = [0, 1].map((rest) => lines.filter((_, i) => i % 2 === rest).join('')) as [string, string]
    const compressed = file('even.gz', gzipSync(even))
    const { out } = await weir(['plan', compressed, '-', '--rules', limited, '--nodes', '1', '--format', 'json'], {
      stdin: [gzipSync(odd)],
    })
    const report: PlanReport = JSON.parse(out)
    expect(report.log).toMatchObject({ files: [compressed, '-'], records: 396, torn: [] })
    expect(report.plan.rejected).toBe(340)
  })

  it.each(['json', 'csv'])('that are torn are read up to there, and end with 2: %s', async (format) => {
    const whole = gzipSync(traffic())
    const torn = file('torn.gz', whole.subarray(0, whole.length / 2))
    const { code, out, err } = await weir(['plan', torn, '--rules', limited, '--format', format])
    expect([code, err]).toEqual([2, expect.stringContaining('requests after the damage are left out')])
    if (format === 'csv') return
    const { log: read }: PlanReport = JSON.parse(out)
    expect(read.torn).toHaveLength(1)
    expect(read.records).toBeGreaterThan(0)
    expect(read.records).toBeLessThan(396)
  })

  it('with lines that can not be read are read all the same', async () => {
    const odd = `${'x'.repeat(100_000)}\n{"time":\n\n${line(0, '192.0.2.1')}{"no":"time"}\n${line(1, '192.0.2.1').trim()}`
    const { log: read } = await planned(file('odd.log', odd), '--rules', limited)
    expect(read).toMatchObject({ lines: 5, records: 2, unreadable: 3, unknown: 0 })
    expect(read.samples[0]).toBe('x'.repeat(200))
  })

  it('with requests of unknown clients end with 2, and name the first one and what to pass', async () => {
    const mixed = file('mixed.log', `${line(0, '192.0.2.1')}${line(1, 'web 10.0.0.1 192.0.2.1')}${line(2, '-')}`)
    const { code, out, err } = await weir(['plan', mixed, '--rules', limited, '--format', 'json'])
    expect(code).toBe(2)
    expect(err).toContain(`2 of 3 lines could not be read as a request. The first is line 2 of ${mixed}. It has no client`)
    expect(err).toContain('Pass --client-field')
    // The report still includes the readable lines.
    const { log: read, plan }: PlanReport = JSON.parse(out)
    expect(read).toMatchObject({ unknown: 2, firstUnknown: { file: mixed, line: 2, why: 'client' } })
    expect(plan.requests).toBe(1)
    // Unreadable lines have priority over the exit code for different rules.
    const stricter = rules('none.json', { limit: 1, match: ['/*rest'] })
    expect((await weir(['plan', mixed, '--rules', stricter, '--against', limited])).code).toBe(2)
    const none = await weir(['plan', file('none.log', line(0, '-')), '--rules', limited])
    expect([none.code, none.err]).toEqual([2, expect.stringContaining('could be read. 1 of 1 line')])
  })

  it('behind a balancer are counted by the field that is asked for', async () => {
    const behind = Array.from({ length: 40 }, (_, i) => line(i, '10.0.0.2').replace('\n', ` "203.0.113.${i % 20}"\n`)).join('')
    const balanced = file('balanced.log', behind)
    const { out } = await weir(['plan', balanced, '--rules', limited])
    expect(out).toContain('client: the address before the time')
    expect(out).toContain('40 of 40 requests come from 1 private address, such as 10.0.0.2, and x-forwarded-for names other clients.')
    expect((await planned(balanced, '--rules', limited)).plan.exactRejected).toBe(30)
    const { log: read, plan } = await planned(balanced, '--rules', limited, '--client-field', 'http_x_forwarded_for')
    expect(plan.exactRejected).toBe(0)
    expect(read.client).toEqual({ field: { name: 'http_x_forwarded_for', requests: 40 }, others: [] })
    const direct = file('direct.log', behind + line(40, '198.51.100.1'))
    expect((await weir(['plan', direct, '--rules', limited, '--client-field', 'X-Forwarded-For'])).out).toContain(
      'client: x-forwarded-for, and the address before the time for 1 request without it',
    )
    const missing = await weir(['plan', balanced, '--rules', limited, '--client-field', 'x_forwarded'])
    expect([missing.code, missing.err]).toEqual([2, expect.stringContaining('No request of the log has the field "x_forwarded"')])
  })

  it('that are out of order by too much end with 2', async () => {
    const backwards = Array.from({ length: 18_000 }, (_, i) => line(30_000 - i, '192.0.2.1')).join('')
    const { code, err } = await weir([
      'plan',
      file('backwards.log', backwards),
      '--rules',
      rules('much.json', { limit: 100 }),
      '--nodes',
      '1',
    ])
    expect([code, err]).toEqual([2, expect.stringMatching(/1,615 of 18,000 requests are too far out of order, .* Sort the log by time/)])
  })

  it('with times of the future and of the past are read', async () => {
    const odd = [0, 86_400 * 365 * 100, 1, 2, -86_400 * 365 * 30, 3].map((second) => line(second, '192.0.2.1')).join('')
    const { log: read, plan } = await planned(file('times.log', odd), '--rules', limited)
    expect([read.records, read.late, plan.requests, plan.rejected]).toEqual([6, 0, 6, 0])
  })

  it('are left alone when the command fails: a pipe that stays open keeps no process alive', async () => {
    const stdin = new Readable({ read() {} })
    stdin.push(Buffer.from('\ufeffx\n', 'utf16le'))
    const [stdout, stderr] = [
      new Writable({ write: (_, _encoding, done) => done() }),
      new Writable({ write: (_, _encoding, done) => done() }),
    ]
    expect(await run(['plan', '-', '--rules', limited], { stdin, stdout, stderr, env: {} }, '1.2.3')).toBe(2)
    expect(stdin.destroyed).toBe(true)
  })

  it('without any request end with 2', async () => {
    const { code, err, out } = await weir(['plan', file('empty.log', 'nothing\n'), '--rules', limited])
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('There is no request in')
  })
})

describe('what can not be done', () => {
  it.each([
    [['plan', 'missing.log', '--rules', limited], 'missing.log": there is no such file'],
    [['plan', '.', '--rules', limited], 'it is a folder'],
    [['plan', '/dev/zero', '--rules', limited], 'it is a device. Use a file, a pipe, or -'],
    [['plan', log, '--rules', limited, '--proxies', '0'], 'a whole number from 1 to 100'],
    [['plan', log, '--rules', limited, '--max-keys', '0'], 'a whole number from 1 to 10000000'],
    [['plan', log, '--rules', 'missing.yaml'], 'missing.yaml": there is no such file'],
    [['plan', log], "required option '--rules <file>'"],
    [['plan', log, '--rules', limited, '--nodes', '0'], 'a whole number from 1 to 100'],
    [['plan', log, '--rules', limited, '--round-trip', 'soon'], 'a duration such as 500ms'],
    [['plan', log, '--rules', limited, '--coordination', 'none'], 'Allowed choices are background'],
    [['plan', '-', '-', '--rules', limited], 'can be read only once'],
    [['plan', log, '--rules', 'file:nowhere%'], 'no URL of a file'],
    [['plna'], "unknown command 'plna'"],
  ])('ends with 2: %j', async (args, said) => {
    const { code, err, out } = await weir(args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(said)
  })

  it('ends with 1 where the rules are rejected, and says what and where', async () => {
    const bad = file(
      'bad.yaml',
      'version: 1\npolicies:\n  - key: ip\n    limit: 10\n    interval: 1m\n  - name: other\n    key: ip\n    limit: none of these\n    intervall: 1m\n',
    )
    const { code, err } = await weir(['plan', log, '--rules', bad])
    expect(code).toBe(1)
    expect(err).toMatch(/policies\[1\].*line \d, column \d/)
    const told = await weir(['check', bad, '--json'])
    expect([told.code, told.err]).toEqual([1, ''])
    expect(JSON.parse(told.out).rejected[0]).toEqual({
      path: expect.stringContaining('policies[1]'),
      line: expect.any(Number),
      column: expect.any(Number),
      message: expect.any(String),
    })
  })
})
