import { type Attempt, beats, reached, search } from './search.ts'

/**
 * Searches for `minutes` minutes, and prints how far attacks got against each window and limit. Returns whether an attack beat the
 * bound.
 *
 * @param seed fixes the attacks
 */
export async function attackFor(minutes: number, seed: number): Promise<boolean> {
  const until = Date.now() + minutes * 60_000
  const best = new Map<string, Attempt>()
  let attempts = 0
  let beaten = 0
  const climbs = (function* () {
    for (let climb = 0; ; climb++) yield climb
  })()
  console.log(`Attacks with seed ${seed}, for ${minutes} min.`)
  await search(
    seed,
    climbs,
    () => Date.now() < until,
    (attempt) => {
      attempts++
      const { window, limit } = attempt.target
      const name = `${window}, ${limit} per 10 s, ${attempt.pace}`
      const before = best.get(name)
      if (before === undefined || reached(attempt) > reached(before)) best.set(name, attempt)
      if (!beats(attempt)) return
      beaten++
      console.log(`BEATEN: ${attempt.allowed} allowed, at most ${attempt.most}: ${JSON.stringify(attempt)}`)
    },
  )
  console.log(row(['', 'nodes', 'round trip', 'allowed', 'bound', 'part of the excess']))
  for (const [name, attempt] of [...best].sort()) {
    const { target, allowed, most } = attempt
    const part = `${Math.round(1_000 * reached(attempt)) / 10} %`
    console.log(row([name, String(target.nodes), `${target.roundTrip} ms`, String(allowed), most.toFixed(0), part]))
  }
  console.log(`\n${attempts} attacks with seed ${seed}, ${beaten} of which beat the bound.`)
  return beaten > 0
}

function row(cells: readonly string[]): string {
  return cells.map((cell, index) => cell.padEnd([34, 7, 12, 12, 12, 0][index] ?? 0)).join(' ')
}
