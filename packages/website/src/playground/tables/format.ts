const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const SHORT = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })

export function whole(value: number): string {
  return WHOLE.format(value)
}

/** A number with its noun. */
export function plural(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** Two digits, for figures whose magnitude matters. */
export function short(value: number): string {
  return SHORT.format(value)
}

/** A fraction in per cent. */
export function percent(part: number): string {
  const value = part * 100
  return `${value === 0 || value >= 99.95 ? value.toFixed(value >= 1000 || value === 0 ? 0 : 1) : SHORT.format(value)} %`
}

/** Milliseconds. */
export function duration(ms: number): string {
  return ms < 1000 ? `${short(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
}
