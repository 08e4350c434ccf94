import { describe, expect, it } from 'vitest'
import type { PlanReport } from '../src/commands/plan-report.ts'
import { file, line, rules, weir } from './weir.ts'

describe('more keys than processes may keep', () => {
  const clients = file('clients.log', Array.from({ length: 60 }, (_, i) => line(i, `192.0.2.${i}`)).join(''))

  it.each(['background', 'central', 'local'])('end with 2 and the number, before they take memory: %s', async (coordination) => {
    const args = ['plan', clients, '--rules', rules('hour.json', { interval: '1h' }), '--coordination', coordination]
    const { code, out, err } = await weir([...args, '--max-keys', '50'])
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('The policy "client" has more than 50 keys at one time, first at 2026-03-07 12:00:50 UTC.')
    expect(err).toContain('Pass a larger --max-keys')
    expect((await weir([...args, '--max-keys', '60'])).code).toBe(0)
  })

  it('are counted at one time, not in the whole log', async () => {
    const { out } = await weir([
      'plan',
      clients,
      '--rules',
      rules('second.json', { interval: '1s' }),
      '--max-keys',
      '10',
      '--nodes',
      '1',
      '--format',
      'json',
    ])
    const { plan }: PlanReport = JSON.parse(out)
    expect(plan.policies[0]?.overflowing).toBe(false)
    expect(plan.policies[0]?.keysHeld).toBeLessThanOrEqual(10)
  })
})
