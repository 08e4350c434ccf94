import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { Decision } from '@weir/core'
import { createGuard } from '@weir/core/adapter'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { stringify } from 'yaml'
import type { Logs } from '../log/logs.ts'
import type { LogRecord } from '../log/record.ts'
import { Busiest } from '../replay/busiest.ts'
import { logReader } from '../replay/reader.ts'
import { documentOf } from '../rules/document.ts'
import { pathOf } from '../rules/read-rules.ts'
import { WRONG_USE } from '../terminal/exit-codes.ts'
import type { Output } from '../terminal/output.ts'
import { count, moment, safeText } from '../terminal/text.ts'
import { UsageError } from '../terminal/usage-error.ts'
import { eachRecord, type LogOptions, ofLogs, summaryOf, withLogs } from './log-options.ts'
import { durationOption, wholeNumber } from './options.ts'
import { missingIn } from './plan-log.ts'
import { type SuggestReport, suggestReport } from './suggest-report.ts'
import { showSuggestion } from './suggest-text.ts'

interface SuggestOptions extends LogOptions {
  readonly interval: number
  readonly maxKeys: number
  readonly top: number
  readonly output?: string
  readonly json?: true
}

/** A day. Longer limits are quotas, which a log of some weeks says nothing about. */
const LONGEST_INTERVAL = 86_400_000
const SHORTEST_INTERVAL = 1_000

/** Adds `weir suggest`. */
export function addSuggest(program: Command, out: Output, end: (code: number) => void): void {
  ofLogs(program.command('suggest'))
    .summary('suggest a limit from access logs')
    .description(
      'Counts the requests of each client in its busiest interval, and shows the limits that leave nearly all clients alone, and the clients above.',
    )
    .addOption(
      new Option('--interval <duration>', 'the interval of the limit, from 1s to 1d').argParser(intervalOption).default(60_000, '1m'),
    )
    .option('--max-keys <n>', 'clients to count, 1 to 10000000. If a log has more, exit code 2', wholeNumber(1, 10_000_000), 1_000_000)
    .option('--top <n>', 'clients above the limit to list, 1 to 1000', wholeNumber(1, 1_000), 5)
    .option('--output <file>', 'write the limit that leaves 99 % of the clients alone to a new file of rules, in JSON or YAML by its name')
    .option('--json', 'print all figures as JSON')
    .action(async (files: string[], options: SuggestOptions) => {
      // A log may take minutes.
      if (options.output !== undefined && existsSync(pathOf(options.output))) throw existing(options.output)
      const report = await withLogs(files, options, out, (logs) => suggest(logs, options, out))
      if (options.output !== undefined) await writeRules(options.output, report)
      if (options.json === true) out.json(report)
      else showSuggestion(report, options.output, out)
      const missing = missingIn(report.log)
      if (missing.length > 0) end(WRONG_USE)
      for (const text of missing) out.note(`weir: ${safeText(text, 1_000)}`)
    })
}

function intervalOption(text: string): number {
  const value = durationOption(LONGEST_INTERVAL)(text)
  if (value < SHORTEST_INTERVAL) throw new InvalidArgumentError('Use a duration from 1s to 1d.')
  return value
}

async function suggest(logs: Logs, { interval, maxKeys, top }: SuggestOptions, out: Output): Promise<SuggestReport> {
  const counts = new Busiest(interval)
  const keyOf = clientKeys()
  await eachRecord(logs, logs.read(), out, (record) => {
    counts.add(keyOf(record), record)
    if (counts.keys > maxKeys) throw new UsageError(tooManyClients(maxKeys, record.time))
    return undefined
  })
  counts.close()
  return suggestReport(summaryOf(logs), interval, counts, top)
}

/** Reads the key of a client as `key: 'ip'` does, so that a limit counts the same clients. */
function clientKeys(): (record: LogRecord) => string {
  const guard = createGuard<LogRecord, never[]>({ key: 'ip', limit: 1, interval: '1s', coordination: 'local', maxKeys: 1 }, logReader)
  // Without a store, a decision is no promise.
  return (record) => (guard.check(record) as Decision).key
}

function tooManyClients(maxKeys: number, time: number): string {
  return `The log has more than ${count(maxKeys)} clients, first at ${moment(time)} UTC. Pass a larger --max-keys, or a part of the log.`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

/** An interval as rules contain it: `1m`. */
function intervalText(interval: number): string {
  const [unit, size] = UNITS.find(([, length]) => interval % length === 0) ?? ['ms', 1]
  return `${interval / size}${unit}`
}

/** @throws UsageError if the file exists, or can't be written */
async function writeRules(file: string, { leaves99: { limit }, interval, clients }: SuggestReport): Promise<void> {
  const rules = {
    version: 1,
    change: { why: `leaves 99 % of ${count(clients)} clients in the access log alone` },
    policies: [{ name: 'client', key: 'ip', limit, interval: intervalText(interval) }],
  }
  const text = file.endsWith('.json') ? `${JSON.stringify(rules, undefined, 2)}\n` : stringify(rules)
  documentOf(text)
  try {
    await writeFile(pathOf(file), text, { flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw code === 'EEXIST' ? existing(file) : new UsageError(`Can't write ${JSON.stringify(file)}: ${message}.`)
  }
}

function existing(file: string): UsageError {
  return new UsageError(`Can't write ${JSON.stringify(file)}: it exists. Remove it, or choose another name.`)
}
