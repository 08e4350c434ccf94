import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'

export interface Request {
  /** Milliseconds since the Unix epoch. */
  readonly time: number
  readonly client: string
}

const ENDING = '.tsv.gz'

/** Names of the traces in a folder. `undefined` if the folder does not exist. */
export function tracesIn(folder: string): readonly string[] | undefined {
  if (!existsSync(folder)) return undefined
  return readdirSync(folder)
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length))
    .sort()
}

/** Reads a trace: gzip, tab separated, with a header line. The first columns are milliseconds since the Unix epoch and the client. */
export function readTrace(folder: string, name: string): readonly Request[] {
  const lines = gunzipSync(readFileSync(join(folder, name + ENDING)))
    .toString('latin1')
    .split('\n')
    .slice(1)
  const requests = lines
    .filter((line) => line !== '')
    .map((line): Request => {
      const [time = '', client = ''] = line.split('\t', 2)
      if (!/^\d+$/.test(time)) throw new Error(`${name}: ${JSON.stringify(line.slice(0, 40))} does not begin with a time`)
      return { time: Number(time), client }
    })
  return requests.sort((one, other) => one.time - other.time)
}

/**
 * Moves the trace to time 0 and removes whole minutes from long silences. It makes no difference to a window of a minute, and weeks
 * without requests need not be simulated.
 */
export function withoutSilence(requests: readonly Request[], minute = 60_000): readonly Request[] {
  const kept = 3 * minute
  let shift = Math.floor((requests[0]?.time ?? 0) / minute) * minute
  let before = requests[0]?.time ?? 0
  return requests.map(({ time, client }) => {
    const silence = time - before
    before = time
    if (silence > kept) shift += Math.floor((silence - kept) / minute) * minute
    return { time: time - shift, client }
  })
}
