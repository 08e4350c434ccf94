import type { PolicyView } from '../src/protocol.ts'
import { span } from '../src/span.ts'
import { visible } from '../src/visible.ts'

export { span }

const number = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

export function count(value: number): string {
  return value < 10_000 ? number.format(value) : compact.format(value)
}

export function rate(value: number): string {
  return value > 0 && value < 10 ? value.toFixed(1) : count(value)
}

export function percent(part: number): string {
  return `${part > 0 && part < 0.1 ? (part * 100).toFixed(1) : number.format(part * 100)} %`
}

/** Milliseconds on an axis, on which 1 s and 1.25 s are two marks. */
export function latency(ms: number): string {
  return ms < 1_000 ? span(ms) : `${Number((ms / 1_000).toFixed(2))}\u00a0s`
}

/** A limit as text: 100 per minute, or 100 in flight. */
export function rule(limit: number, interval: number): string {
  if (interval === 0) return `${count(limit)} in flight`
  return `${count(limit)} per ${span(interval).replace(/^1\s/, '')}`
}

/** The algorithm and the burst as text, unless it is a plain window: `, token bucket, 20 at once`. */
export function means({ algorithm, limit, capacity }: { algorithm: string; limit: number; capacity: number }): string {
  // Numbers after an algorithm's name are its options.
  const name =
    algorithm === 'fixed-window' || algorithm === 'concurrency' ? '' : `, ${algorithm.replace(/[-\d]+$/, '').replaceAll('-', ' ')}`
  return capacity === limit ? name : `${name}, ${count(capacity)} at once`
}

export function clock(time: number): string {
  return new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' })
}

/** A day and a time. */
export function moment(time: number): string {
  return new Date(time).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short', hourCycle: 'h23' })
}

/** The time zone of all times on the page, with its difference to UTC: `Europe/Berlin (UTC+1)`. */
export function timeZone(): string {
  const { timeZone: name } = Intl.DateTimeFormat().resolvedOptions()
  if (name === 'UTC') return name
  const difference = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset' })
    .formatToParts()
    .find(({ type }) => type === 'timeZoneName')
  const offset = difference?.value.replace('GMT', 'UTC') ?? 'UTC'
  return `${name} (${offset})`
}

/** A number with its noun: 1 key, 2 keys. */
export function many(value: number, one: string, more = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : more}`
}

/** The open reservations of a policy as text: 3 open reservations, 2,700 units reserved. */
export function reserved({ reservations: { open, units } }: Pick<PolicyView, 'reservations'>): string {
  return `${many(open, 'open reservation')}, ${many(units, 'unit')} reserved`
}

/** Texts for the reasons of rejections. */
export const REASONS: Readonly<Record<string, string>> = {
  limit: 'At its limit',
  cooldown: 'Cooldown',
  blocked: 'Manual block',
  storeDown: 'Store down: the share of this process is used up',
  overflow: 'The table of keys is full',
  denied: 'On the deny list',
  queue: 'Waited too long, or the queue was full',
}

/** A key's name. Keys that don't fit into a full table share a counter with a name that no user has. */
export function keyName(key: string): string {
  if (key === '\u0000overflow') return '(keys beyond the full table)'
  return key === '' ? '(empty)' : visible(key)
}
