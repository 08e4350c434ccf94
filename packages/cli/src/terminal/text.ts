/**
 * Untrusted text (of logs, keys, stores) in a form that is safe to show. Terminals interpret control characters, and bidirectional
 * characters hide text.
 */
export function safeText(text: string, longest = 60): string {
  const visible = text
    .slice(0, 4 * longest)
    .replace(
      /[^\x20-\x7e\u00a1-\u024f\u0370-\u03ff\u0400-\u052f\u2010-\u2027\u2190-\u21ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]/g,
      escaped,
    )
  return visible.length > longest ? `${visible.slice(0, longest - 1)}…` : visible
}

function escaped(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}

/** A count with separators: `12,345`. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** `1 key`, `3 keys`. */
export function plural(value: number, noun: string, nouns = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : nouns}`
}

/** A part of a whole: `44.2 %`, or `0 %` for none. */
export function percent(part: number, whole: number): string {
  if (part === 0 || whole === 0) return '0 %'
  const value = (100 * part) / whole
  return value < 0.1 ? '< 0.1 %' : `${value.toFixed(1)} %`
}

/** A part of a whole, with its percentage: `9,032 (44.2 %)`. */
export function shareOf(part: number, whole: number): string {
  return `${count(part)} (${percent(part, whole)})`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** Milliseconds in a readable unit: `2 s`, `1 min`, `1.5 h`. */
export function duration(milliseconds: number): string {
  const [unit, size] = UNITS.find(([, least]) => milliseconds >= least) ?? ['ms', 1]
  return `${Number((milliseconds / size).toFixed(1))} ${unit}`
}

/** `118 B`, `1.2 kB`, `34.5 MB`. */
export function bytes(value: number): string {
  if (value < 1_000) return `${Math.round(value)} B`
  const [unit, size] = value < 1e6 ? (['kB', 1e3] as const) : value < 1e9 ? (['MB', 1e6] as const) : (['GB', 1e9] as const)
  return `${(value / size).toFixed(1)} ${unit}`
}

/** A time as `2026-01-16 23:43:38`, in UTC. */
export function moment(time: number): string {
  return new Date(time).toISOString().slice(0, 19).replace('T', ' ')
}
