import { expect, test } from 'vitest'
import { fixedWindow } from '../../src/algorithms/fixed-window/index.ts'
import { slidingWindow } from '../../src/algorithms/sliding-window/index.ts'
import type { PolicyOptions } from '../../src/decide/policy.ts'
import { calendar } from '../../src/options/calendar.ts'
import { scene } from '../support/nodes.ts'

/** The warnings of a throttler with this policy, started twice. */
function warningsOf(policy: Omit<PolicyOptions, 'limit'>): string[] {
  const node = scene().node({ limit: 1, ...policy })
  const warnings: string[] = []
  node.on('warning', ({ error }) => warnings.push(`${error.code}: ${error.message}`))
  node.start()
  node.check('k')
  node.update([{ limit: 2, ...policy }])
  node.start()
  return warnings
}

test.each([
  ['1d', '1 d begin at midnight', 'day'],
  ['7d', '7 d begin on Thursdays at midnight', 'week'],
  ['30h', '1.25 d begin at midnight', 'day'],
] as const)('windows of %s that begin by the epoch are told once', (interval, said, unit) => {
  const warnings = warningsOf({ interval })
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toContain(`WEIR_WARN_UTC_INTERVAL: Policy "default": intervals of ${said} UTC.`)
  expect(warnings[0]).toContain(`use interval: calendar("${unit}", { timeZone:`)
})

test.each<[string, Omit<PolicyOptions, 'limit'>]>([
  ['a calendar', { interval: calendar('week') }],
  ['short ones', { interval: '23h' }],
  ['windows that begin with a request', { interval: '7d', algorithm: fixedWindow({ start: 'first-request' }), coordination: 'local' }],
  ['windows that slide', { interval: '7d', algorithm: slidingWindow() }],
])('nothing is told of %s', (_, policy) => {
  expect(warningsOf(policy)).toEqual([])
})
