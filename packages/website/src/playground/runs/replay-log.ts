import { createThrottler, type PolicyOptions } from '@weir/core'
import { type LogRecord, parseLine } from '@weir/demo/log-record'
import { manualClock } from '@weir/testing'

/** The most clients to list. */
const LISTED = 20

/** The decisions of a policy about the requests of an access log, in one process. */
export interface LogOutcome {
  readonly lines: number
  readonly requests: number
  readonly rejected: number
  readonly clients: number
  /** The clients with the most rejected requests, most first. */
  readonly worst: readonly { readonly client: string; readonly requests: number; readonly rejected: number }[]
}

/**
 * Replays a log in the Common or Combined Log Format, by client. Skips other lines.
 *
 * @returns undefined if the text has no lines
 */
export async function replayLog(options: PolicyOptions, text: string): Promise<LogOutcome | undefined> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const records = lines.map((line) => parseLine(line.trimEnd())).filter((record) => record !== undefined)
  if (lines.length === 0) return undefined
  if (records.length === 0) return { lines: lines.length, requests: 0, rejected: 0, clients: 0, worst: [] }
  records.sort((one, other) => one.time - other.time)
  const clock = manualClock()
  clock.step((records[0] as LogRecord).time - clock.now())
  const throttler = createThrottler({ policies: [{ ...options, coordination: 'local' }], clock })
  const seen = new Map<string, { client: string; requests: number; rejected: number }>()
  for (const { time, client } of records) {
    // Logs have whole seconds, so most requests have the same time as the previous one.
    if (time > clock.now()) await clock.advance(time - clock.now())
    let entry = seen.get(client)
    if (entry === undefined) seen.set(client, (entry = { client, requests: 0, rejected: 0 }))
    entry.requests++
    if (!throttler.check(client).allowed) entry.rejected++
  }
  await throttler.close()
  const all = [...seen.values()]
  return {
    lines: lines.length,
    requests: records.length,
    rejected: all.reduce((sum, { rejected }) => sum + rejected, 0),
    clients: all.length,
    worst: all
      .filter(({ rejected }) => rejected > 0)
      .sort((one, other) => other.rejected - one.rejected)
      .slice(0, LISTED),
  }
}
