import { Command } from 'commander'
import { search } from './search.ts'
import { LONG, SHORT } from './searches.ts'

const { short } = new Command('pnpm model')
  .description(
    'Searches all states of leases: every order of lost, late and repeated messages, crashes, ends of intervals, and stores that lose data. It runs ' +
      'the code of the processes and the store, and checks each state: never more than the limit, and only a crashed process loses units.',
  )
  .option('--short', 'small searches of some seconds', false)
  .parse()
  .opts<{ short: boolean }>()

for (const { name, about, model } of short ? SHORT : LONG) {
  console.log(`${name}: ${about}`)
  const began = performance.now()
  const found = search(model, Number.POSITIVE_INFINITY, (states) => console.log(`  ${states} states …`))
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  console.log(`  ${found.states} states, ${found.steps} steps between them, ${seconds} s: ${found.fault ?? 'nothing wrong'}`)
  for (const step of found.path) console.log(`    ${step}`)
  if (found.fault !== undefined) process.exitCode = 1
}
