import { describe, expect, it } from 'vitest'
import type { SweepReport } from '../src/commands/plan-report.ts'
import { file, line, rules, weir } from './weir.ts'

// One client with 60 requests in a minute, and nine with one.
const flood = Array.from({ length: 60 }, (_, i) => line(i, '192.0.2.66')).join('')
const others = Array.from({ length: 9 }, (_, i) => line(i * 6, `2001:db8:1111:222${i}::7`)).join('')
const log = file('output.log', flood + others)
const limited = rules('output.json', {})
const plan = (...args: string[]) => weir(['plan', log, '--rules', limited, '--nodes', '1', ...args], { columns: 80 })

describe('a sweep', () => {
  it('shows the effect of each limit of a policy in one table', async () => {
    const { code, out } = await plan('--sweep', 'client.limit=50,20,100')
    expect(code).toBe(0)
    expect(out).toMatch(/^client: 69 requests, 10 keys\n/)
    expect(out).toMatch(/│ 20 per 1 min +│ 40 \(58\.0 %\) │ +1 \(10\.0 %\) │/)
    expect(out).toMatch(/│ 100 per 1 min +│ +0 \(0 %\) │ +0 \(0 %\) │/)
    const { sweep, policy }: SweepReport = JSON.parse((await plan('--sweep', 'client.limit=20,50', '--format', 'json')).out)
    expect(policy).toBe('client')
    expect(sweep.map(({ rejected, policies }) => [policies[0]?.limit, rejected])).toEqual([
      [20, 40],
      [50, 10],
    ])
  })

  it.each([
    [['--sweep', 'other.limit=1'], 'There is no policy "other" with a limit in the rules. Use "client" in --sweep.'],
    [['--sweep', 'client.limit=many'], 'such as client.limit=30,60,120'],
    [['--sweep', `client.limit=${Array.from({ length: 21 }, (_, i) => i + 1).join(',')}`], 'at most 20 limits'],
    [['--sweep', 'client.limit=1,2', '--against', limited], 'Remove --against and --next.'],
    [['--sweep', 'client.limit=1,2', '--fail-if', 'rejected>1'], 'Remove --sweep.'],
  ])('ends with 2: %j', async (args, message) => {
    const { code, out, err } = await plan(...args)
    expect([code, out, err]).toEqual([2, '', expect.stringContaining(message)])
  })

  it('is rejected if all policies have plans', async () => {
    const policies = [{ name: 'client', key: 'ip', interval: '1m', plan: 'tier', plans: { free: 3, pro: 6 } }]
    const plans = file('sweep-plans.json', JSON.stringify({ version: 1, policies }))
    const { code, err } = await weir(['plan', log, '--rules', plans, '--sweep', 'client.limit=3'])
    expect([code, err]).toEqual([2, 'weir: No policy of the rules has a limit of its own, which --sweep needs.\n'])
  })
})

describe('--fail-if', () => {
  it.each([
    ['rejected>72%', 1],
    ['rejected > 73 %', 0],
    ['rejected>49', 1],
    ['rejected>50', 0],
  ])('%s ends with %i for 50 of 69 requests', async (condition, code) => {
    expect((await plan('--fail-if', condition)).code).toBe(code)
  })

  it('rejects another condition', async () => {
    expect(await plan('--fail-if', 'allowed<1')).toMatchObject({ code: 2, err: expect.stringContaining("such as 'rejected>1%'") })
  })
})

describe('a format', () => {
  const hostile = file('formula.json', JSON.stringify({ version: 1, policies: [{ name: '=cmd,|', key: 'ip', limit: 10, interval: '1m' }] }))

  it('csv has a row per policy', async () => {
    const { out } = await plan('--format', 'csv')
    const [head, row] = out.split('\n')
    expect(head).toBe('rules,policy,limit,interval_ms,requests,rejected,keys,keys_rejected,rejected_exact,overshoot')
    expect(row).toBe(`${limited},client,10,60000,69,50,10,1,50,0`)
    expect((await weir(['plan', log, '--rules', hostile, '--format', 'csv'])).out).toContain(`,"'=cmd,|",10,`)
  })

  it('md is a table', async () => {
    const { out } = await weir(['plan', log, '--rules', hostile, '--nodes', '1', '--format', 'md'])
    expect(out).toContain('| =cmd,\\| | 10 | 60,000 | 69 | 50 (72.5 %) | 10 | 1 (10.0 %) | 50 | 0 |')
    const widths = out
      .trim()
      .split('\n')
      .map((row) => row.replaceAll('\\|', '').split('|').length)
    expect(new Set(widths).size).toBe(1)
  })

  it('text begins with the answer, has dates, and fits into 80 columns', async () => {
    const { out } = await plan('--against', rules('output-other.json', { limit: 60 }))
    expect(out).toMatch(/^Stricter: rejects 50 \(72\.5 %\) of the requests, 1 key, that /)
    expect(out).toContain('2026-03-07 12:00:00')
    for (const one of out.split('\n')) if (!one.includes('/')) expect(one.length).toBeLessThanOrEqual(80)
  })
})

describe('help', () => {
  it('is shown without arguments, and asked for', async () => {
    expect(await weir(['--help'])).toMatchObject({ code: 0, out: expect.stringContaining('plan') })
    expect(await weir(['plan', '--help'])).toMatchObject({ code: 0, out: expect.stringContaining('--round-trip') })
    expect(await weir(['--version'])).toMatchObject({ code: 0, out: '1.2.3\n' })
    expect((await weir([])).code).toBe(2)
  })
})

it('rules that do not support the given coordination end with 2', async () => {
  const { code, err } = await weir([
    'plan',
    log,
    '--rules',
    rules('counter.json', { algorithm: 'slidingLog', coordination: 'local' }),
    '--coordination',
    'leased',
  ])
  expect(code).toBe(2)
  expect(err).toContain('coordination')
})
