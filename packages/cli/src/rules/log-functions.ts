import type { LogRecord } from '../log/record.ts'
import type { StandIn } from './read-rules.ts'

/** A function that fields of a log replace, so that reports can name it. */
export interface StoodIn {
  readonly kind: string
  readonly name: string
}

/**
 * Replaces functions of the application, which a document names, by fields of the log. `key: tenant` counts by the field `tenant`.
 *
 * @param named receives each replaced function
 */
export function logFunctions(named: StoodIn[]): StandIn {
  return (kind, name) => {
    if (kind === 'algorithms' || kind === 'delays') return undefined
    if (!named.some((one) => one.kind === kind && one.name === name)) named.push({ kind, name })
    const field = (record: LogRecord): string | undefined => record.field(name.toLowerCase())
    if (kind === 'keys') return field
    if (kind === 'matches') return (record: LogRecord) => !NOTHING.has(field(record))
    if (kind === 'plans') return (record: LogRecord) => field(record) ?? ''
    return (record: LogRecord) => Number(field(record) ?? Number.NaN)
  }
}

const NOTHING: ReadonlySet<string | undefined> = new Set([undefined, '', '0', 'false'])
