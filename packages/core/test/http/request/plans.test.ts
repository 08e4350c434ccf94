import { describe, expect, test } from 'vitest'
import { expandPlans, type PlannedPolicyOptions } from '../../../src/decide/plans.ts'
import type { RequestPolicyOptions } from '../../../src/decide/policy.ts'
import { paths } from '../../../src/http/request/paths.ts'
import { Rules } from '../../../src/http/request/rules.ts'
import type { WeirError } from '../../../src/report/errors.ts'
import { type FakeRequest, fakeReader } from '../fake-request.ts'

const planned: PlannedPolicyOptions<FakeRequest> = {
  name: 'api',
  interval: '1m',
  key: 'ip',
  plans: { free: 60, pro: 600 },
  plan: (request) => request.user as string,
}

test('each plan is a policy, and the others stay as they are', () => {
  const policies = expandPlans<FakeRequest>([{ name: 'global', limit: 9, interval: '1m' }, planned])
  expect(policies.map(({ name, limit }) => [name, limit])).toEqual([
    ['global', 9],
    ['api:free', 60],
    ['api:pro', 600],
  ])
})

describe('the plan of a request', () => {
  const reported: WeirError[] = []
  let asked = 0
  const policies = expandPlans<FakeRequest>([
    {
      ...planned,
      match: paths('/api/*rest'),
      plan: (request) => {
        asked++
        if (request.user === 'boom') throw new Error('boom')
        return request.user as string
      },
    },
  ])
  const rules = new Rules(policies as readonly RequestPolicyOptions<FakeRequest>[], fakeReader, { report: (error) => reported.push(error) })
  const applying = (user: unknown, path = '/api/x') => {
    rules.evaluate({ user, path })
    return rules.applying.slice(0, rules.applied)
  }

  test('decides which policy applies, and is asked once', () => {
    asked = 0
    expect(applying('free')).toEqual([0])
    expect(applying('pro')).toEqual([1])
    expect(asked).toBe(2)
  })

  test('is not asked where the policy does not match', () => {
    asked = 0
    expect(applying('pro', '/other')).toEqual([])
    expect(asked).toBe(0)
  })

  test.each(['golden', undefined, 5, 'boom', 'constructor'])('that is %s has the smallest limit, with one report', (user) => {
    expect(applying(user)).toEqual([0])
    expect(reported).toHaveLength(1)
  })
})

test.each<[object, string, string]>([
  [{ ...planned, limit: 5 }, 'WEIR_INVALID_OPTION', 'limit'],
  [{ ...planned, plans: {} }, 'WEIR_INVALID_OPTION', 'plans'],
  [{ ...planned, plans: 5 }, 'WEIR_INVALID_OPTION', 'plans'],
  [{ ...planned, plan: undefined }, 'WEIR_MISSING_OPTION', 'plan'],
  [{ ...planned, plan: 'free' }, 'WEIR_INVALID_OPTION', 'plan'],
])('%j is rejected', (policy, code, option) => {
  expect(() => expandPlans([policy as typeof planned])).toThrow(expect.objectContaining({ code, message: expect.stringContaining(option) }))
})

describe('plans with intervals of their own', () => {
  const mixed = { ...planned, plans: { free: { limit: 1000, interval: '1d' }, pro: 600 } } as const

  test('are policies with these intervals; the smallest is the one that allows least in the long run', () => {
    const policies = expandPlans<FakeRequest>([mixed])
    expect(policies.map(({ name, limit, interval }) => [name, limit, interval])).toEqual([
      ['api:free', 1000, '1d'],
      ['api:pro', 600, '1m'],
    ])
    const rules = new Rules(policies as readonly RequestPolicyOptions<FakeRequest>[], fakeReader, { report: () => {} })
    rules.evaluate({ user: 'unknown' })
    expect(rules.applying.slice(0, rules.applied)).toEqual([0])
  })

  test('need no common one', () => {
    const { interval: _, ...rest } = mixed
    const limits = { free: { limit: 5, interval: '1s' }, pro: { limit: 5, interval: '1h' } } as const
    expect(expandPlans<FakeRequest>([{ ...rest, plans: limits }]).map(({ interval }) => interval)).toEqual(['1s', '1h'])
  })

  test.each([
    { limit: 5, burst: 3 },
    { limit: 5, interval: 'soon' },
  ])('that can not be used are rejected: %j', (free) => {
    expect(() => expandPlans<FakeRequest>([{ ...mixed, plans: { free, pro: 5 } as never }])).toThrow(
      expect.objectContaining({ code: 'WEIR_INVALID_OPTION' }),
    )
  })
})
