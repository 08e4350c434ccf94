import type { Policy } from '@weir/core'
import type { Summary } from '@weir/testing'
import { numberOf, type Settings, textOf } from '../settings/settings.ts'

/** The figure that measures how far the limit was exceeded. It depends on the promise of the algorithm. */
export type Yardstick = 'overshoot' | 'worstWindow' | 'debt'

/** The figures of an agreement. */
export interface Exceeding {
  readonly yardstick: Yardstick
  /** The excess as a part of the limit. */
  readonly exceeded: Summary & { readonly p50: number }
  /** Wrong rejections as a part of all requests. */
  readonly wronglyRejected: number
}

const BALANCINGS: Readonly<Record<string, string>> = { even: 'uniform', zipf: 'zipf()', sticky: 'sticky' }
const IN_WHAT = {
  overshoot: 'in an interval',
  worstWindow: 'in any stretch of that length',
} as const

/** A sentence for a service level agreement. */
export function agreementOf(settings: Settings, { limit, interval }: Policy, { yardstick, exceeded, wronglyRejected }: Exceeding): string {
  const beyond = (part: number) => `${Math.ceil(part * limit)} (${upwards(part * 100, 2)} %)`
  const among = `With ${numberOf(settings, 'nodes')} processes, a round trip of ${numberOf(settings, 'rtt')} ms and a load of ${numberOf(settings, 'load')} times the limit`
  const allowed = `${limit} requests per ${lengthOf(interval)}`
  const most = yardstick === 'debt' ? overdrawn() : passed(IN_WHAT[yardstick])
  function passed(inWhat: string): string {
    if (exceeded.max === 0) return `no more than ${allowed} are allowed`
    const usually = exceeded.p95 === 0 ? 'no' : `at most ${beyond(exceeded.p95)}`
    return `${usually} more than ${allowed} are allowed ${inWhat} for 95 % of the time, and at most ${beyond(exceeded.max)} more at any simulated time`
  }
  function overdrawn(): string {
    const bucket = `a bucket of ${allowed} is`
    if (exceeded.max === 0) return `${bucket} never overdrawn`
    const usually = exceeded.p95 === 0 ? 'not overdrawn' : `overdrawn by at most ${beyond(exceeded.p95)}`
    return `${bucket} ${usually} for 95 % of the time, and by at most ${beyond(exceeded.max)} at any simulated time`
  }
  const wrongly =
    wronglyRejected === 0
      ? 'no client within the limit is rejected'
      : `at most ${upwards(wronglyRejected * 100, 3)} % of requests are rejected although they are within the limit`
  return `${among}, ${most}. During this, ${wrongly}.`
}

/** A test of the agreement, to copy. */
export function testOf(settings: Settings, { yardstick, exceeded, wronglyRejected }: Exceeding, intervals: number): string {
  const options = textOf(settings, 'options')
    .trim()
    .replace(/[;,\s]+$/, '')
  const balancing = BALANCINGS[textOf(settings, 'balancing')] ?? 'uniform'
  // Options can call only the algorithms and functions such as `calendar()`.
  const called = [...new Set(options.match(/\b[a-z]\w*(?=\()/g))].sort()
  const wrong = { overshoot: 'falseRequests', worstWindow: 'rejectedUnderLimit', debt: 'rejectedWithRoom / requests' }[yardstick]
  const names = [yardstick, ...(yardstick === 'debt' ? ['rejectedWithRoom', 'requests'] : [wrong])]
  return `${called.length > 0 ? `import { ${called.join(', ')} } from '@weir/core'\n` : ''}import { expectSimulation, poisson, ${balancing.replace('()', '')} } from '@weir/testing'
import { expect, test } from 'vitest'

test('the limit holds in a cluster', async () => {
  await expectSimulation(
    {
      policy: ${options.replaceAll('\n', '\n      ')},
      nodes: ${numberOf(settings, 'nodes')},
      intervals: ${intervals},
      load: poisson(${numberOf(settings, 'load')}),
      balancing: ${balancing},
      network: { latency: ${numberOf(settings, 'rtt') / 2} },
      seed: ${numberOf(settings, 'seed')},${yardstick === 'debt' ? '\n      shortcut: false,' : ''}
    },
    ({ ${names.join(', ')} }) => {
      expect(${yardstick}.p95).toBeLessThanOrEqual(${upwards(exceeded.p95, 4)})
      expect(${yardstick}.max).toBeLessThanOrEqual(${upwards(exceeded.max, 4)})
      expect(${wrong}).toBeLessThanOrEqual(${upwards(wronglyRejected, 6)})
    },
  )
})
`
}

/** Rounds up, so that the measured value is within the result. */
function upwards(value: number, digits: number): number {
  return Number((Math.ceil(value * 10 ** digits - 1e-9) / 10 ** digits).toFixed(digits))
}

/** Milliseconds as the interval of a limit in text, e.g. `min` or `5 min`. */
export function lengthOf(interval: number): string {
  const units = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
    [1000, 's'],
  ] as const
  for (const [length, name] of units) if (interval % length === 0) return interval === length ? name : `${interval / length} ${name}`
  return `${interval} ms`
}
