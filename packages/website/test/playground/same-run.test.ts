import { simulate } from '@weir/testing'
import { describe, expect, test } from 'vitest'
import type { LanesOutcome } from '../../src/playground/runs/lanes.ts'
import { run } from '../../src/playground/runs/run.ts'
import { scenarioOf } from '../../src/playground/runs/scenario.ts'
import { readAddress } from '../../src/playground/settings/settings.ts'

const ADDRESSES = [
  '?scene=limit&limit=50&load=4&interval=10',
  '?scene=limit&nodes=12&limit=300&load=40&rtt=100&interval=2&balancing=zipf&seed=7',
  '?scene=limit&nodes=1&limit=20&load=0.9&balancing=sticky&interval=3',
  '?scene=outage&limit=100&load=30&fault=hang&seed=3',
  '?scene=outage&limit=100&load=30&fault=empty&failMode=closed',
  '?scene=outage&limit=100&load=30&fault=cut&failMode=open',
]

describe.each(ADDRESSES)('a watched run: %s', (address) => {
  test('is the run of `simulate`, decision by decision', async () => {
    const settings = readAddress(address)
    const outcome = (await run(settings)) as LanesOutcome
    const plain = await simulate(scenarioOf(settings))
    expect(outcome.digest).toBe(plain.digest)
    expect(outcome.requests).toBe(plain.requests)
    expect(outcome.ways[0]?.perInterval).toEqual(plain.measured.map(({ allowed }) => allowed))
    expect(outcome.ways[0]?.allowedOfExact).toBe(plain.allowedOfExact)
    // The tape contains each request, and marks each allowed one.
    expect(outcome.tape.requests.time.length).toBe(plain.requests)
    expect(outcome.tape.requests.allowed.reduce((sum, allowed) => sum + allowed, 0)).toBe(plain.allowed)
  })
})

test('the ways beside it count the same requests', async () => {
  const { ways, offered, limit } = (await run(readAddress('?scene=limit&nodes=4&limit=50&load=6&balancing=even'))) as LanesOutcome
  const [, perProcess, central] = ways
  offered.forEach((requests, index) => {
    expect(central?.perInterval[index]).toBe(Math.min(limit, requests))
    // Round robin gives each of the four processes a whole limit, with a request more or less.
    expect(Math.abs((perProcess?.perInterval[index] as number) - Math.min(4 * limit, requests))).toBeLessThanOrEqual(4)
  })
})
