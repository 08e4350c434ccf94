import { type Coordination, createThrottler, memoryStore } from '@weir/core'
import { type Command, Option } from 'commander'
import { Logs } from '../log/logs.ts'
import type { LogRecord } from '../log/record.ts'
import { type ClusterOptions, coordinated, hasSlots, type LogPolicy } from '../replay/cluster.ts'
import { Comparison } from '../replay/comparison.ts'
import { bytesPerKey } from '../replay/memory.ts'
import { Replay } from '../replay/replay.ts'
import { logFunctions, type StoodIn } from '../rules/log-functions.ts'
import { checkText, pathOf, textIn } from '../rules/read-rules.ts'
import { FINE, REJECTED, WRONG_USE } from '../terminal/exit-codes.ts'
import type { Output } from '../terminal/output.ts'
import { Progress } from '../terminal/progress.ts'
import { count, safeText } from '../terminal/text.ts'
import { UsageError } from '../terminal/usage-error.ts'
import { durationOption, wholeNumber } from './options.ts'
import { missingIn, nothingIn, tooManyKeys } from './plan-log.ts'
import { changesReport, type PlanReport, type RulesReport, rulesReport } from './plan-report.ts'
import { showPlan } from './plan-text.ts'

interface PlanOptions {
  readonly rules: string
  readonly against?: string
  readonly next?: true
  readonly nodes: number
  readonly roundTrip: number
  readonly coordination?: Coordination
  readonly clientField?: string
  readonly proxies?: number
  readonly maxKeys: number
  readonly top: number
  readonly json?: true
}

const COORDINATIONS: readonly Coordination[] = ['background', 'periodic', 'leased', 'central', 'local']
/** A minute. No real store is further away. */
const LONGEST_ROUND_TRIP = 60_000

/** Adds `weir plan`. */
export function addPlan(program: Command, out: Output, end: (code: number) => void): void {
  program
    .command('plan')
    .summary('replay access logs against rules')
    .description('Replays access logs against rules, and shows which requests they would have rejected.')
    .argument('<logs...>', 'access logs, merged by time. - reads standard input')
    .requiredOption('--rules <file>', 'the rules, in YAML or JSON')
    .option(
      '--against <file>',
      'other rules, such as the current ones, to show which requests are decided differently. Exit code 1 if any are',
    )
    .option(
      '--next',
      'compare the candidate rules (next) of the document with its current ones. Exit code 1 if a request is decided differently',
    )
    .option('--nodes <n>', 'processes that the requests are spread over at random, 1 to 100', wholeNumber(1, 100), 3)
    .addOption(
      new Option('--round-trip <duration>', 'from a process to the store and back, at most a minute')
        .argParser(durationOption(LONGEST_ROUND_TRIP))
        .default(1, '1ms'),
    )
    .addOption(
      new Option(
        '--coordination <name>',
        'for all policies, instead of the coordination in the rules. Policies with concurrency support only leased and local, and otherwise keep theirs',
      ).choices(COORDINATIONS),
    )
    .option(
      '--client-field <name>',
      'the field with the client, such as http_x_forwarded_for or req.headers.x-real-ip. In text also the number of a word before the time',
    )
    .option(
      '--proxies <n>',
      'how many addresses your own proxies append to a list, 1 to 100: the client is the nth from the end. Without it, the client is the only public address of the list',
      wholeNumber(1, 100),
    )
    .option(
      '--max-keys <n>',
      'keys of a policy that a process keeps at one time, as the option maxKeys, 1 to 10000000. If a log has more, exit code 2',
      wholeNumber(1, 10_000_000),
      250_000,
    )
    .option('--top <n>', 'keys to list per policy, 1 to 1000', wholeNumber(1, 1_000), 5)
    .option('--json', 'print all figures as JSON')
    .action(async (logs: string[], options: PlanOptions) => {
      const report = await plan(logs, options, out)
      if (options.json === true) out.json(report)
      else showPlan(report, out)
      const { changes } = report
      end(changes !== undefined && changes.rejectedNow.requests + changes.allowedNow.requests > 0 ? REJECTED : FINE)
      const missing = missingIn(report.log)
      if (missing.length > 0) end(WRONG_USE)
      for (const text of missing) out.note(`weir: ${safeText(text, 1_000)}`)
    })
}

/** One document of rules, ready for a replay. */
interface Candidate {
  readonly file: string
  readonly version: number
  readonly cluster: ClusterOptions
  /** Measured before the replay, because garbage of a replay would distort the measurement. */
  readonly bytesPerKey: number
  readonly notes: readonly string[]
}

async function plan(files: readonly string[], options: PlanOptions, out: Output): Promise<PlanReport> {
  const { clientField, proxies } = options
  const documents = await documentsOf(options)
  if (files.filter((file) => file === '-').length > 1) throw new UsageError('Standard input, -, can be read only once. Pass - once.')
  const logs = await Logs.open(files.map(pathOf), out.surroundings.stdin, {
    // Variables of nginx begin with a dollar sign.
    field: clientField?.toLowerCase().replace(/^\$/, ''),
    proxies,
  })
  try {
    return await planOf(logs, documents, options, out)
  } finally {
    logs.close()
  }
}

async function planOf(logs: Logs, documents: readonly Rules[], options: PlanOptions, out: Output): Promise<PlanReport> {
  const { nodes, roundTrip, top, clientField } = options
  const batches = logs.read()
  const first = await firstOf(batches)
  const timed = first.some(({ duration }) => duration !== undefined)
  const candidates = first.length === 0 ? [] : documents.map((document) => candidateOf(document, timed, options))
  const comparison = candidates.length === 1 ? undefined : new Comparison()
  const replays = candidates.map(
    ({ cluster }, place) => new Replay(cluster, comparison && ((record, decision) => comparison.add(record, decision, place === 0))),
  )
  await replayAll(logs, first, batches, replays, options.maxKeys, out)
  const { summary } = logs
  if (summary.records === 0) throw new UsageError(nothingIn(summary))
  if (summary.client.field?.requests === 0)
    throw new UsageError(`No request of the log has the field ${JSON.stringify(clientField)}, which --client-field names.`)
  const reports = candidates.map((candidate, place) => reportOf(candidate, replays[place] as Replay, top, summary.records - summary.late))
  const [mine, other] = reports as [RulesReport, RulesReport | undefined]
  return {
    log: summary,
    nodes,
    roundTrip,
    plan: mine,
    ...(other !== undefined && comparison !== undefined && { against: other, changes: changesReport(comparison, top) }),
  }
}

type Batches = ReturnType<Logs['read']>

/** The first records. They show whether the log has durations. */
async function firstOf(batches: Batches): Promise<readonly LogRecord[]> {
  for (;;) {
    const { value, done } = await batches.next()
    if (done === true) return []
    if (value.length > 0) return value
  }
}

async function replayAll(
  logs: Logs,
  first: readonly LogRecord[],
  batches: Batches,
  replays: readonly Replay[],
  maxKeys: number,
  out: Output,
): Promise<void> {
  const progress = new Progress(out.surroundings.stderr, logs.size)
  let requests = 0
  const send = async (records: readonly LogRecord[]): Promise<void> => {
    for (const record of records) {
      if (requests++ % 100 === 0) progress.look(() => ({ done: logs.done(requests), requests: count(requests) }))
      for (const replay of replays) {
        const waiting = replay.add(record)
        if (waiting !== undefined) await waiting
        if (replay.crowded !== undefined) throw new UsageError(tooManyKeys(replay.crowded, record.time, maxKeys))
      }
    }
  }
  try {
    await send(first)
    for await (const records of batches) await send(records)
    for (const replay of replays) await replay.close()
  } finally {
    progress.stop()
  }
}

/** The rules of a document: the current ones, or the ones under `next`. */
interface Rules {
  readonly file: string
  readonly version: number
  readonly policies: readonly LogPolicy[]
  readonly overrides: ClusterOptions['overrides']
  readonly notes: readonly string[]
}

/** The rules, and the rules to compare them with, if there are any. */
async function documentsOf(options: PlanOptions): Promise<readonly Rules[]> {
  const { rules: file, against, next } = options
  if (next === undefined) {
    const mine = await rulesOf(file, 'running', options)
    return against === undefined ? [mine] : [mine, await rulesOf(against, 'running', options)]
  }
  if (against !== undefined) throw new UsageError('Rules can be compared with one other document. Use --next or --against, not both.')
  return [await rulesOf(file, 'next', options), await rulesOf(file, 'running', options)]
}

async function rulesOf(file: string, part: 'running' | 'next', { next, coordination }: PlanOptions): Promise<Rules> {
  const stoodIn: StoodIn[] = []
  const document = checkText<never>(await textIn(file), logFunctions(stoodIn))
  const set = part === 'next' ? document.next : document
  if (set === undefined) throw new UsageError(`${JSON.stringify(file)} has no candidate rules. Add them as "next", or remove --next.`)
  const notes = stoodIn.map(({ kind, name }) => `The field "${name}" of the log stands in for the function "${name}" of "${kind}".`)
  if (document.next !== undefined && next === undefined)
    notes.push('The candidate rules, "next", are left out. Pass --next to compare them with the current ones.')
  const policies = (set.policies as unknown as readonly LogPolicy[]).map((policy) => {
    const made = coordination === undefined ? policy : coordinated(policy, coordination)
    if (made === policy && coordination !== undefined && hasSlots(policy))
      notes.push(`The policy ${nameOf(policy)} keeps its coordination, because concurrency supports only "leased" and "local".`)
    return made
  })
  // Reports invalid policies now instead of at the first request.
  createThrottler({ policies, store: memoryStore() })
  return { file: part === 'next' ? `${file}, next` : file, version: document.version, policies, overrides: set.overrides, notes }
}

/** @param timed whether the log contains the durations of requests */
function candidateOf(
  { file, version, policies: all, overrides, notes }: Rules,
  timed: boolean,
  { nodes, roundTrip, maxKeys }: PlanOptions,
): Candidate {
  const leftOut = timed ? [] : all.filter(hasSlots)
  const policies = all.filter((policy) => !leftOut.includes(policy))
  if (policies.length === 0) throw new UsageError(`No policy in ${JSON.stringify(file)} can be replayed. ${UNTIMED}`)
  const names = new Set(leftOut.map(({ name = 'default' }) => name))
  return {
    file,
    version,
    cluster: { policies, overrides: overrides.filter(({ policy }) => !names.has(policy)), nodes, roundTrip, maxKeys, seed: 1 },
    bytesPerKey: bytesPerKey(policies),
    notes: [...notes, ...leftOut.map((policy) => `The policy ${nameOf(policy)} is left out. ${UNTIMED}`)],
  }
}

/** Without durations it is unknown which requests are in flight together. */
const UNTIMED = 'The log has no durations of requests. In nginx, put $request_time after the user agent, or "request_time" into JSON lines.'

function nameOf({ name = 'default' }: LogPolicy): string {
  return JSON.stringify(name)
}

function reportOf({ file, version, bytesPerKey, notes, cluster }: Candidate, replay: Replay, top: number, records: number): RulesReport {
  const { tally, usage, untimed } = replay
  if (tally === undefined || usage === undefined) throw new Error('Nothing was replayed.')
  const slots = cluster.policies.filter(hasSlots).map(nameOf).join(', ')
  const untold = `The log has no duration for ${count(untimed)} of ${count(records)} requests, so they use no time in ${slots}.`
  return rulesReport({ rules: file, version, tally, usage, bytesPerKey, notes: untimed === 0 ? notes : [...notes, untold] }, top)
}
