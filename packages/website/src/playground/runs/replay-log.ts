import { createThrottler, type PolicyOptions } from '@weir/core'
import { parseLine } from '@weir/demo/log-record'
import { manualClock } from '@weir/testing'
import { readLines } from './read-log.ts'
import { OptionsError } from './read-options.ts'

/** The most clients to list. */
const LISTED = 20
/** The most lines to replay, so that a run ends after some seconds. Further lines are only counted. */
const MOST_LINES = 1_000_000

/** The decisions of a policy about the requests of an access log, in one process. */
export interface LogOutcome {
  /** All lines, and the first lines, which were replayed. */
  readonly lines: number
  readonly replayed: number
  readonly requests: number
  readonly rejected: number
  /** All clients, and the clients with a rejected request. */
  readonly clients: number
  readonly limited: number
  /** The clients with the most rejected requests, most first. */
  readonly worst: readonly { readonly client: string; readonly requests: number; readonly rejected: number }[]
}

interface Client {
  readonly client: string
  requests: number
  rejected: number
}

/**
 * Replays logs in the Common or Combined Log Format, by client. Skips other lines.
 *
 * @param logs - texts or gzip files
 * @returns undefined if the logs have no lines
 */
export async function replayLog(options: PolicyOptions, logs: readonly Blob[], most: number = MOST_LINES): Promise<LogOutcome | undefined> {
  const clients = new Map<string, Client>()
  const requests: { readonly time: number; readonly from: Client }[] = []
  let lines = 0
  const read = (line: string): void => {
    if (++lines > most) return
    const record = parseLine(line)
    if (record === undefined) return
    let from = clients.get(record.client)
    if (from === undefined) {
      const client = copyOf(record.client)
      clients.set(client, (from = { client, requests: 0, rejected: 0 }))
    }
    from.requests++
    requests.push({ time: record.time, from })
  }
  for (const log of logs) await readLines(log, read)
  if (lines === 0) return undefined
  requests.sort((one, other) => one.time - other.time)
  await decide(options, requests, clients.size)
  const limited = [...clients.values()].filter(({ rejected }) => rejected > 0).sort((one, other) => other.rejected - one.rejected)
  return {
    lines,
    replayed: Math.min(lines, most),
    requests: requests.length,
    rejected: limited.reduce((sum, { rejected }) => sum + rejected, 0),
    clients: clients.size,
    limited: limited.length,
    worst: limited.slice(0, LISTED),
  }
}

/** Copies a part of a line, because a substring keeps the whole piece of the log in memory. */
function copyOf(text: string): string {
  return JSON.parse(JSON.stringify(text))
}

async function decide(
  options: PolicyOptions,
  requests: readonly { readonly time: number; readonly from: Client }[],
  clients: number,
): Promise<void> {
  const clock = manualClock()
  clock.step((requests[0]?.time ?? 0) - clock.now())
  // The timeout is an error with 'local', because no request waits. A dry run shows here which requests it would reject.
  const { storeTimeout: _, dryRun: __, ...local } = options
  if (local.delay !== undefined)
    throw new OptionsError('Requests of a log do not wait here. Remove "delay" or the log, or replay the log with weir plan')
  // With fewer keys than clients, the clients without a key would count together.
  const throttler = createThrottler({ policies: [{ ...local, coordination: 'local' }], clock, maxKeys: Math.max(1, clients) })
  for (const { time, from } of requests) {
    // Logs have whole seconds, so most requests have the same time as the previous one.
    const idle = time - clock.now()
    if (idle > 0) {
      // Timers run once per pause instead of for each interval in it, because a log of a month has many. They decide nothing.
      clock.stall(clock.time.now + idle)
      await clock.advance(idle)
    }
    if (!throttler.check(from.client).allowed) from.rejected++
  }
  await throttler.close()
}
