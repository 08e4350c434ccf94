import type { Colors } from './colors.ts'

/** A count with separators: `12,345`. */
export function count(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

/** Milliseconds as seconds: `1.4 s`. */
export function seconds(milliseconds: number): string {
  return `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`
}

/** A duration in a readable unit: `2 s`, `1 min`, `1.5 h`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${round(milliseconds)} ms`
  if (milliseconds < 60_000) return `${round(milliseconds / 1000)} s`
  if (milliseconds < 3_600_000) return `${round(milliseconds / 60_000)} min`
  return `${round(milliseconds / 3_600_000)} h`
}

/** `1 client`, `3 clients`. */
export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? '' : 's'}`
}

/** A bar of `width` characters, full at `of`. An arrow at its end shows a higher value. */
export function bar(value: number, of: number, width: number, colors: Colors): string {
  const part = of > 0 ? value / of : 0
  const full = Math.min(width, Math.round(part * width))
  const paint = part > 1 ? colors.red : part >= 0.999 ? colors.yellow : colors.green
  return paint('█'.repeat(full)) + colors.dim('░'.repeat(width - full)) + (part > 1 ? colors.red('▶') : ' ')
}

/** Untrusted text of a log in a form that is safe to show, because terminals interpret control characters. */
export function safeText(text: string, longest: number): string {
  const visible = text.replace(/[^\x20-\x7e]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return visible.length > longest ? `${visible.slice(0, longest - 1)}…` : visible
}

function round(value: number): string {
  return String(Number(value.toFixed(1)))
}
