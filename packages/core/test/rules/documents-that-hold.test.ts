import { describe, expect, test } from 'vitest'
import * as yaml from 'yaml'
import { parsePolicies } from '../../src/decide/check-policy.ts'
import { expandPlans } from '../../src/decide/plans.ts'
import { address } from '../../src/decide/request-rule.ts'
import { concurrency, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type CheckRulesOptions, checkRules, parseRules } from '../../src/rules/index.ts'

interface Asked {
  readonly tenant: string
}

const code: CheckRulesOptions<Asked> = {
  algorithms: { tokenBucket, slidingWindow, concurrency },
  keys: { tenant: ({ tenant }) => tenant },
  matches: { outside: () => true },
  costs: { bytes: () => 2 },
  limits: { contract: () => 10 },
  plans: { planOf: () => 'free' },
  delays: { slower: () => 5 },
}

const check = (text: string) => checkRules(parseRules(text, { yaml }), code)

const FULL = `
# The rules of the API.
version: 7
change: { at: 2026-11-23T22:00:00Z, by: alice, why: incident 42 }
policies:
  - name: customer
    key: [tenant, ip]
    limit: 100
    interval: 1m
    algorithm: { name: tokenBucket, burst: 20, warmUp: 10s }
    coordination: local
    cooldown: { base: 1m, max: 1h }
  - name: login
    key: ip
    match: [POST /login, POST /signup]
    limit: 5
    interval: { calendar: week, startsOn: sunday, timeZone: Europe/Prague }
    dryRun: true
  - name: open
    key: { header: X-Api-Key }
    match: outside
    limit: 10
    algorithm: concurrency
    coordination: leased
    delay: 5s
  - name: plan
    key: ip
    plans: { free: 60, pro: { limit: 600, interval: { calendar: month } } }
    interval: 1m
    plan: planOf
    cost: bytes
  - name: contract
    key: all
    limit: contract
    fallbackLimit: 10
    interval: 1s
    delay: slower
overrides:
  - { policy: customer, key: acme, limit: 5000, until: 2026-12-24T00:00:00+01:00 }
  - { policy: plan, key: bad, limit: 0 }
  - { policy: 'plan:pro', key: good, limit: 7 }
next:
  policies: [{ name: customer, key: ip, limit: 50, interval: 1m }]
`

describe('a document', () => {
  test('says all that policies in code can, and names what is a function', () => {
    const rules = check(FULL)
    expect(rules.version).toBe(7)
    expect(rules.change).toEqual({ at: '2026-11-23T22:00:00Z', by: 'alice', why: 'incident 42' })
    const options = expandPlans(rules.policies)
    const policies = parsePolicies(options, true)
    expect(policies.map(({ name, limit, interval }) => [name, limit, interval])).toEqual([
      ['customer', 100, 60_000],
      ['login', 5, 7 * 86_400_000],
      ['open', 10, 0],
      ['plan:free', 60, 60_000],
      ['plan:pro', 600, 2_629_746_000],
      ['contract', 10, 1_000],
    ])
    expect(policies[0]?.algorithm.id).toBe('token-bucket-warming-up-10000-3')
    expect(policies[0]?.cooldownGrowth).toMatchObject({ factor: 2, max: 3_600_000 })
    expect(options[0]?.key).toEqual([code.keys?.tenant, 'ip'])
    expect(options[1]?.match).toMatchObject({ patterns: ['POST /login', 'POST /signup'] })
    expect(options[2]).toMatchObject({ key: { header: 'X-Api-Key' }, match: code.matches?.outside, delay: '5s' })
    expect(options[3]).toMatchObject({ cost: code.costs?.bytes })
    expect(options[5]).toMatchObject({ limit: code.limits?.contract, delay: code.delays?.slower })
    expect(rules.overrides).toEqual([
      { policy: 'customer', key: 'acme', limit: 5000, until: Date.UTC(2026, 11, 23, 23) },
      { policy: 'plan', key: 'bad', limit: 0, until: Number.POSITIVE_INFINITY },
      { policy: 'plan:pro', key: 'good', limit: 7, until: Number.POSITIVE_INFINITY },
    ])
    expect(rules.next?.policies).toMatchObject([{ name: 'customer', limit: 50 }])
  })

  test('means the same in JSON, with the library for YAML or without', () => {
    const json = JSON.stringify(yaml.parse(FULL))
    expect(JSON.stringify(checkRules(parseRules(json), code))).toBe(JSON.stringify(check(FULL)))
    expect(JSON.stringify(check(json))).toBe(JSON.stringify(check(FULL)))
  })

  test('need not name the fixed window', () => {
    const { policies } = check(
      '{ "version": 1, "policies": [{ "key": "ip", "limit": 1, "interval": "1s", "algorithm": { "name": "fixedWindow", "start": "first-request" }, "coordination": "local" }] }',
    )
    expect(policies).toMatchObject([{ algorithm: { id: 'fixed-window-first-request' } }])
  })

  test('can be checked without the application, where something stands in for its functions', () => {
    const asked: string[] = []
    const standIn = (kind: string, name: string) => {
      asked.push(`${kind}.${name}`)
      return kind === 'algorithms' ? concurrency : () => 'x'
    }
    expect(checkRules(parseRules(FULL, { yaml }), { algorithms: { tokenBucket }, standIn }).version).toBe(7)
    expect(asked).toEqual([
      'keys.tenant',
      'algorithms.concurrency',
      'matches.outside',
      'costs.bytes',
      'plans.planOf',
      'limits.contract',
      'delays.slower',
    ])
  })
})

test('a name in "keys" may stand for an address that a function reads', () => {
  const client = address<Asked>(({ tenant }) => tenant)
  const text = JSON.stringify({ version: 1, policies: [{ name: 'client', key: ['client', 'route'], limit: 1, interval: '1m' }] })
  expect(checkRules(parseRules(text), { keys: { client } }).policies[0]).toMatchObject({ key: [client, 'route'] })
})
