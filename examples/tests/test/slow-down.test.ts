import { afterEach, expect, it } from 'vitest'
import { type Program, startProgram } from './program.ts'

let program: Program | undefined
afterEach(() => program?.stop('SIGKILL'))

/** The milliseconds that a response reports as its delay. */
async function took(response: Response): Promise<number> {
  return Number(/after (\d+) ms/.exec(await response.text())?.[1])
}

it('slows requests down step by step above the limit, and then rejects them', { timeout: 180_000 }, async () => {
  program = await startProgram('slow-down')
  const { url } = program
  // All requests must be within one interval.
  const left = 10_000 - (Date.now() % 10_000)
  if (left < 6_000) await new Promise((resolve) => setTimeout(resolve, left + 50))
  const responses = await Promise.all(Array.from({ length: 9 }, () => fetch(url)))
  expect(responses.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 8 }, () => 200), 429])
  const times = await Promise.all(responses.filter(({ ok }) => ok).map(took))
  times.sort((a, b) => a - b)
  for (let over = 1; over <= 5; over++) expect(times[over + 2]).toBeGreaterThanOrEqual(300 * over - 2)
  const slowest = responses.find((response) => response.ok && response.headers.get('ratelimit') !== null)
  expect(slowest?.headers.get('ratelimit')).toMatch(/^"slow-down";r=\d;t=\d+/)
})

it('makes one report at a time', { timeout: 180_000 }, async () => {
  program = await startProgram('slow-down')
  const { url } = program
  // One start time for all reports, because a busy machine may accept one of them later, which then waits for a shorter time.
  const begun = performance.now()
  const reports = Array.from({ length: 3 }, async () => {
    await took(await fetch(`${url}/report`))
    return performance.now() - begun
  })
  const times = await Promise.all(reports)
  times.sort((a, b) => a - b)
  expect(times[1]).toBeGreaterThanOrEqual(2 * 500 - 4)
  expect(times[2]).toBeGreaterThanOrEqual(3 * 500 - 6)
})
