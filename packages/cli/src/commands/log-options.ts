import type { Command } from 'commander'
import { type LogSummary, Logs } from '../log/logs.ts'
import type { LogRecord } from '../log/record.ts'
import { pathOf } from '../rules/read-rules.ts'
import type { Output } from '../terminal/output.ts'
import { Progress } from '../terminal/progress.ts'
import { count } from '../terminal/text.ts'
import { UsageError } from '../terminal/usage-error.ts'
import { wholeNumber } from './options.ts'
import { nothingIn } from './plan-log.ts'

/** The options of commands that read access logs. */
export interface LogOptions {
  readonly clientField?: string
  readonly proxies?: number
}

/** Adds the argument and the options of access logs. */
export function ofLogs(command: Command): Command {
  return command
    .argument('<logs...>', 'access logs, merged by time. - reads standard input')
    .option(
      '--client-field <name>',
      'the field with the client, such as http_x_forwarded_for or req.headers.x-real-ip. In text also the number of a word before the time',
    )
    .option(
      '--proxies <n>',
      'how many addresses your own proxies append to a list, 1 to 100: the client is the nth from the end. Without it, the client is the only public address of the list',
      wholeNumber(1, 100),
    )
}

/**
 * Opens the logs for one task, and closes them after it.
 *
 * @throws (rejects) UsageError if one of the logs can't be read
 */
export async function withLogs<T>(
  files: readonly string[],
  { clientField, proxies }: LogOptions,
  out: Output,
  task: (logs: Logs) => Promise<T>,
): Promise<T> {
  if (files.filter((file) => file === '-').length > 1) throw new UsageError('Standard input, -, can be read only once. Pass - once.')
  const logs = await Logs.open(files.map(pathOf), out.surroundings.stdin, {
    // Variables of nginx begin with a dollar sign.
    field: clientField?.toLowerCase().replace(/^\$/, ''),
    proxies,
  })
  try {
    return await task(logs)
  } finally {
    logs.close()
  }
}

/**
 * Passes each record to `send`, and shows the progress.
 *
 * @param send returns a promise if the next record must wait for it
 */
export async function eachRecord(
  logs: Logs,
  batches: AsyncIterable<readonly LogRecord[]>,
  out: Output,
  send: (record: LogRecord) => Promise<void> | undefined,
): Promise<void> {
  const progress = new Progress(out.surroundings.stderr, logs.size)
  let requests = 0
  try {
    for await (const records of batches) {
      for (const record of records) {
        if (requests++ % 100 === 0) progress.look(() => ({ done: logs.done(requests), requests: count(requests) }))
        const waiting = send(record)
        if (waiting !== undefined) await waiting
      }
    }
  } finally {
    progress.stop()
  }
}

/** @throws UsageError if no request was read, or none has the field of `--client-field` */
export function summaryOf({ summary }: Logs): LogSummary {
  if (summary.records === 0) throw new UsageError(nothingIn(summary))
  const { field } = summary.client
  if (field?.requests === 0)
    throw new UsageError(`No request of the log has the field ${JSON.stringify(field.name)}, which --client-field names.`)
  return summary
}
