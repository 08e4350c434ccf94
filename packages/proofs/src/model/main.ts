import { Command } from 'commander'
import { search } from './search.ts'
import { LONG, SHORT } from './searches.ts'

const { short } = new Command('pnpm model')
  .description(
    'Searches all that may happen to leases: every order of messages that are lost, late or doubled, crashes, intervals that end, stores that lose what they knew. It runs ' +
      "the very code of the nodes and the store, and looks at each state: never more than the limit, no unit lost but a crashed node's.",
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
