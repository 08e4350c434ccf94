import { writeFileSync } from 'node:fs'
import { each, wholeNumber } from '@weir/bench/arguments'
import { Command } from 'commander'
import { exactLimiter, type Rejected, rejectedOf, type Window } from './exact.ts'
import { replay } from './replay.ts'
import { readTrace, tracesIn, withoutSilence } from './trace-file.ts'

const INTERVAL = 60_000
const NODES = [1, 3] as const

interface Row {
  readonly trace: string
  readonly limit: number
  readonly window: Window
  readonly requests: number
  readonly exact: Rejected
  readonly oneNode: Rejected
  readonly threeNodes: Rejected
}

const program = new Command('pnpm traces')
  .description('Replays recorded requests in simulated processes and counts rejected clients, beside exact limiters.')
  .argument(
    '[folder]',
    'contains NAME.tsv.gz: a header line, then milliseconds since the epoch and the client, tab separated, in order of time (default: the environment variable WEIR_TRACES)',
  )
  .option('--trace <name>', 'only this one; may be repeated', each(String))
  .option('--limit <n>', 'requests per minute and client (default: 30, 60 and 120); may be repeated', each(wholeNumber))
  .option('--json <file>', 'write all figures')
  .parse()
const { trace, limit = [30, 60, 120], json } = program.opts<{ trace?: readonly string[]; limit?: readonly number[]; json?: string }>()

const folder = program.args[0] ?? (process.env['WEIR_TRACES'] || undefined)
const names = folder === undefined ? undefined : tracesIn(folder)
if (folder === undefined) console.log(`Skipped: no folder of traces was given.\n\n${program.helpInformation()}`)
else if (names === undefined) console.log(`Skipped: there is no folder ${folder}.`)
else await compare(folder, trace ?? names, limit, json)

async function compare(from: string, traces: readonly string[], limits: readonly number[], json: string | undefined): Promise<void> {
  const rows: Row[] = []
  console.log('| trace | limit per minute | window | exact | 1 node | 3 nodes |\n|---|--:|---|--:|--:|--:|')
  for (const trace of traces) {
    const requests = withoutSilence(readTrace(from, trace), INTERVAL)
    for (const window of ['fixed', 'sliding'] as const) {
      for (const limit of limits) {
        const exact = rejectedOf(requests, requests.map(exactLimiter(window, limit, INTERVAL)))
        const [oneNode, threeNodes] = await Promise.all(
          NODES.map(async (nodes) => rejectedOf(requests, await replay(requests, { window, limit, interval: INTERVAL, nodes }))),
        )
        if (oneNode === undefined || threeNodes === undefined) return
        rows.push({ trace, limit, window, requests: requests.length, exact, oneNode, threeNodes })
        console.log(`| ${trace} | ${limit} | ${window} | ${shown(exact)} | ${shown(oneNode)} | ${shown(threeNodes)} |`)
      }
    }
  }
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ node: process.version, interval: INTERVAL, rows }, undefined, 2)}\n`)
}

function shown({ clients, requests }: Rejected): string {
  return `${clients.toLocaleString('en-US')} / ${requests.toLocaleString('en-US')}`
}
