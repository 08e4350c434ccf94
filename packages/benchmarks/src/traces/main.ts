import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { exactLimiter, type Refused, refusedOf, type Window } from './exact.ts'
import { replay } from './replay.ts'
import { readTrace, tracesIn, withoutSilence } from './trace-file.ts'

const USAGE = `Replays recorded requests through simulated nodes and counts who is refused, beside exact limiters.

  pnpm traces [FOLDER] [--trace NAME]... [--limit N]... [--json FILE]

  FOLDER         holds NAME.tsv.gz: a header line, then milliseconds since the epoch and the client, tab separated,
                 in order of time (default: the environment variable WEIR_TRACES)
  --trace NAME   only this one; may be repeated
  --limit N      requests per minute and client (default 30, 60 and 120); may be repeated
  --json FILE    writes all figures`

const INTERVAL = 60_000
const NODES = [1, 3] as const

interface Row {
  readonly trace: string
  readonly limit: number
  readonly window: Window
  readonly requests: number
  readonly exact: Refused
  readonly oneNode: Refused
  readonly threeNodes: Refused
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    trace: { type: 'string', multiple: true },
    limit: { type: 'string', multiple: true, default: ['30', '60', '120'] },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const folder = positionals[0] ?? (process.env['WEIR_TRACES'] || undefined)
const names = folder === undefined ? undefined : tracesIn(folder)
if (values.help) console.log(USAGE)
else if (folder === undefined) console.log(`Skipped: no folder of traces was given.\n\n${USAGE}`)
else if (names === undefined) console.log(`Skipped: there is no folder ${folder}.`)
else await compare(folder, values.trace ?? names, values.limit.map(Number), values.json)

async function compare(from: string, traces: readonly string[], limits: readonly number[], json: string | undefined): Promise<void> {
  const rows: Row[] = []
  console.log('| trace | limit per minute | window | exact | 1 node | 3 nodes |\n|---|--:|---|--:|--:|--:|')
  for (const trace of traces) {
    const requests = withoutSilence(readTrace(from, trace), INTERVAL)
    for (const window of ['fixed', 'sliding'] as const) {
      for (const limit of limits) {
        const exact = refusedOf(requests, requests.map(exactLimiter(window, limit, INTERVAL)))
        const [oneNode, threeNodes] = await Promise.all(
          NODES.map(async (nodes) => refusedOf(requests, await replay(requests, { window, limit, interval: INTERVAL, nodes }))),
        )
        if (oneNode === undefined || threeNodes === undefined) return
        rows.push({ trace, limit, window, requests: requests.length, exact, oneNode, threeNodes })
        console.log(`| ${trace} | ${limit} | ${window} | ${shown(exact)} | ${shown(oneNode)} | ${shown(threeNodes)} |`)
      }
    }
  }
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ node: process.version, interval: INTERVAL, rows }, undefined, 2)}\n`)
}

function shown({ clients, requests }: Refused): string {
  return `${clients.toLocaleString('en-US')} / ${requests.toLocaleString('en-US')}`
}
