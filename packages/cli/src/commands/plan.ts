import type { Coordination } from '@weir/core'
import { type Command, Option } from 'commander'
import type { Logs } from '../log/logs.ts'
import type { LogRecord } from '../log/record.ts'
import { type ClusterOptions, hasSlots } from '../replay/cluster.ts'
import { Comparison } from '../replay/comparison.ts'
import { bytesPerKey } from '../replay/memory.ts'
import { Replay } from '../replay/replay.ts'
import { FINE, LOOSER, REJECTED, STRICTER, WRONG_USE } from '../terminal/exit-codes.ts'
import type { Output } from '../terminal/output.ts'
import { count, safeText } from '../terminal/text.ts'
import { UsageError } from '../terminal/usage-error.ts'
import { eachRecord, type LogOptions, ofLogs, summaryOf, withLogs } from './log-options.ts'
import { durationOption, wholeNumber } from './options.ts'
import { type FailIf, failIfOption, fails } from './plan-fail-if.ts'
import { missingIn, tooManyKeys } from './plan-log.ts'
import { changesReport, type PlanReport, type RulesReport, rulesReport, type SweepReport } from './plan-report.ts'
import { documentsOf, nameOf, type Rules, type RulesOptions, sweepOption } from './plan-rules.ts'
import { showCsv, showMarkdown } from './plan-tables.ts'
import { showPlan, showSweep } from './plan-text.ts'

interface PlanOptions extends LogOptions, RulesOptions {
  readonly nodes: number
  readonly roundTrip: number
  readonly maxKeys: number
  readonly top: number
  readonly format: 'text' | 'csv' | 'md' | 'json'
  readonly failIf?: FailIf
}

const COORDINATIONS: readonly Coordination[] = ['background', 'periodic', 'leased', 'central', 'local']
/** A minute. No real store is further away. */
const LONGEST_ROUND_TRIP = 60_000
const EXIT_CODES = `
Exit code 0: no problem. 1: --fail-if applies, or the rules are invalid. 2: an error, or requests of
the log are left out. With --against or --next, 3: stricter, because some requests would be rejected
that are allowed now. 4: looser, because some would be allowed that are rejected now, and none the
other way round.`

/** Adds `weir plan`. */
export function addPlan(program: Command, out: Output, end: (code: number) => void): void {
  ofLogs(program.command('plan'))
    .summary('replay access logs against rules')
    .description('Replays access logs against rules, and shows which requests they would have rejected.')
    .requiredOption('--rules <file>', 'the rules, in YAML or JSON')
    .option('--against <file>', 'other rules, such as the current ones, to show which requests are decided differently')
    .option('--next', 'compare the candidate rules (next) of the document with its current ones')
    .option('--sweep <policy.limit=list>', 'try several limits of one policy, such as client.limit=30,60,120, at most 20', sweepOption)
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
      '--max-keys <n>',
      'keys of a policy that a process keeps at one time, as the option maxKeys, 1 to 10000000. If a log has more, exit code 2',
      wholeNumber(1, 10_000_000),
      250_000,
    )
    .option('--top <n>', 'keys to list per policy, 1 to 1000', wholeNumber(1, 1_000), 5)
    .option(
      '--fail-if <condition>',
      'exit code 1 if more requests are rejected, as a number or in percent of the requests that match a policy: rejected>100, rejected>1%',
      failIfOption,
    )
    .addOption(
      new Option('--format <name>', 'csv and md contain a row per policy, json all figures')
        .choices(['text', 'csv', 'md', 'json'])
        .default('text'),
    )
    .addHelpText('after', EXIT_CODES)
    .action(async (logs: string[], options: PlanOptions) => {
      if (options.sweep !== undefined && options.failIf !== undefined)
        throw new UsageError('--fail-if needs one set of rules. Remove --sweep.')
      const report = await plan(logs, options, out)
      show(report, options, out)
      end('sweep' in report ? FINE : codeOf(report, options))
      const missing = missingIn(report.log)
      if (missing.length > 0) end(WRONG_USE)
      for (const text of missing) out.note(`weir: ${safeText(text, 1_000)}`)
    })
}

function show(report: PlanReport | SweepReport, { format }: PlanOptions, out: Output): void {
  if (format === 'json') out.json(report)
  else if (format === 'csv') showCsv(report, out)
  else if (format === 'md') showMarkdown(report, out)
  else if ('sweep' in report) showSweep(report, out)
  else showPlan(report, out)
}

function codeOf({ plan: { rejected, requests }, changes }: PlanReport, { failIf }: PlanOptions): number {
  if (failIf !== undefined && fails(failIf, rejected, requests)) return REJECTED
  if (changes === undefined) return FINE
  return changes.rejectedNow.requests > 0 ? STRICTER : changes.allowedNow.requests > 0 ? LOOSER : FINE
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

async function plan(files: readonly string[], options: PlanOptions, out: Output): Promise<PlanReport | SweepReport> {
  const documents = await documentsOf(options)
  return withLogs(files, options, out, (logs) => planOf(logs, documents, options, out))
}

async function planOf(logs: Logs, documents: readonly Rules[], options: PlanOptions, out: Output): Promise<PlanReport | SweepReport> {
  const { nodes, roundTrip, top, sweep } = options
  const batches = logs.read()
  const first = await firstOf(batches)
  const timed = first.some(({ duration }) => duration !== undefined)
  const candidates = first.length === 0 ? [] : documents.map((document) => candidateOf(document, timed, options))
  const comparison = candidates.length === 1 || sweep !== undefined ? undefined : new Comparison()
  const replays = candidates.map(
    ({ cluster }, place) => new Replay(cluster, comparison && ((record, decision) => comparison.add(record, decision, place === 0))),
  )
  await replayAll(logs, joined(first, batches), replays, options.maxKeys, out)
  const log = summaryOf(logs)
  const reports = candidates.map((candidate, place) => reportOf(candidate, replays[place] as Replay, top, log.records - log.late))
  if (sweep !== undefined) return { log, nodes, roundTrip, policy: sweep.policy, sweep: reports }
  const [mine, other] = reports as [RulesReport, RulesReport | undefined]
  return {
    log,
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

async function* joined(first: readonly LogRecord[], rest: Batches): AsyncGenerator<readonly LogRecord[]> {
  yield first
  yield* rest
}

async function replayAll(
  logs: Logs,
  batches: AsyncIterable<readonly LogRecord[]>,
  replays: readonly Replay[],
  maxKeys: number,
  out: Output,
): Promise<void> {
  const check = ({ time }: LogRecord): void => {
    for (const { crowded } of replays) if (crowded !== undefined) throw new UsageError(tooManyKeys(crowded, time, maxKeys))
  }
  await eachRecord(logs, batches, out, (record) => {
    let waiting: Promise<unknown> | undefined
    for (const replay of replays) {
      const added = replay.add(record)
      if (added !== undefined) waiting = waiting === undefined ? added : Promise.all([waiting, added])
    }
    if (waiting !== undefined) return waiting.then(() => check(record))
    check(record)
    return undefined
  })
  for (const replay of replays) await replay.close()
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

function reportOf({ file, version, bytesPerKey, notes, cluster }: Candidate, replay: Replay, top: number, records: number): RulesReport {
  const { tally, usage, untimed } = replay
  if (tally === undefined || usage === undefined) throw new Error('Nothing was replayed.')
  const slots = cluster.policies.filter(hasSlots).map(nameOf).join(', ')
  const untold = `The log has no duration for ${count(untimed)} of ${count(records)} requests, so they use no time in ${slots}.`
  return rulesReport({ rules: file, version, tally, usage, bytesPerKey, notes: untimed === 0 ? notes : [...notes, untold] }, top)
}
