/** A duration with one or two units. A number and its unit stay on one line. */
export function span(ms: number): string {
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)}\u00a0ms`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 60) return `${seconds}\u00a0s`
  if (seconds < 3_600) return two(Math.floor(seconds / 60), 'min', seconds % 60, 's')
  if (seconds < 86_400) return two(Math.floor(seconds / 3_600), 'h', Math.floor((seconds % 3_600) / 60), 'min')
  return two(Math.floor(seconds / 86_400), 'd', Math.floor((seconds % 86_400) / 3_600), 'h')
}

function two(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}\u00a0${unit}` : `${large}\u00a0${unit} ${small}\u00a0${smallUnit}`
}
