import { expect, test } from 'vitest'
import { Film } from '../../src/playground/picture/film.ts'
import type { LanesOutcome } from '../../src/playground/runs/lanes.ts'
import { run } from '../../src/playground/runs/run.ts'
import { readAddress } from '../../src/playground/settings/settings.ts'

const outcome = (await run(readAddress('?scene=limit&nodes=4&limit=60&load=5&rtt=40'))) as LanesOutcome
const film = new Film(outcome)

test('the end of each interval shows all its allowed requests', () => {
  outcome.ways[0]?.perInterval.forEach((allowed, index) => {
    expect(film.sum((index + 1) * film.interval - 1e-6)).toBe(allowed)
  })
})

test('a process confirms at most what the others allowed, and rejects only at the limit', () => {
  let proofs = 0
  for (let time = 0; time < film.length; time += 211) {
    for (let node = 0; node < film.nodes; node++) {
      const { allowed, others, provenAt } = film.node(node, time)
      expect(others).toBeLessThanOrEqual(film.sum(time) - allowed)
      if (provenAt === undefined) continue
      proofs++
      expect(allowed + others).toBeGreaterThanOrEqual(film.limit)
    }
  }
  expect(proofs).toBeGreaterThan(100)
})

test('steps reach the end and skip no message', () => {
  const moments: number[] = []
  for (let time = 0; time < film.length; time = film.next(time)) moments.push(time)
  expect(moments.every((time, index) => index === 0 || time > (moments[index - 1] as number))).toBe(true)
  const sent = new Set(film.messages.sent)
  for (const time of moments) sent.delete(time)
  expect(sent.size).toBe(0)
})
