import * as Plot from '@observablehq/plot'
import { JSDOM } from 'jsdom'

/** Colours of a chart. Each is a CSS variable with one value on light and one on dark ground. */
export const COLORS = {
  first: 'var(--first)',
  second: 'var(--second)',
  third: 'var(--third)',
  muted: 'var(--muted)',
} as const

// The colours differ in lightness as well as in hue, so that colour-blind readers can distinguish them.
const STYLE = `
:root { --ground: #ffffff; --ink: #1f2328; --muted: #6e7781; --grid: #d8dee4; --first: #0b5cad; --second: #c2410c; --third: #12805c; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0d1117; --ink: #e6edf3; --muted: #9198a1; --grid: #30363d; --first: #6cb6ff; --second: #ff9a5c; --third: #57d3a0; }
}
svg { background: var(--ground); color: var(--ink); }
`

/** The options of `Plot.plot`, with a title for screen readers. */
export interface ChartOptions extends Plot.PlotOptions {
  readonly label: string
}

/** Draws a chart as a standalone SVG file that follows the reader's light or dark ground. */
export function draw({ label, ...options }: ChartOptions): string {
  const { document } = new JSDOM('').window
  const chart = Plot.plot({
    width: 800,
    height: 360,
    marginTop: 34,
    marginRight: 150,
    marginBottom: 44,
    marginLeft: 60,
    ...options,
    style: { fontSize: '13px', fontFamily: 'system-ui, sans-serif', ...(options.style as object) },
    document,
  })
  chart.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  chart.setAttribute('role', 'img')
  chart.setAttribute('aria-label', label)
  const style = document.createElementNS('http://www.w3.org/2000/svg', 'style')
  style.textContent = STYLE
  chart.prepend(style)
  return `${chart.outerHTML}\n`
}

/** An SVG file of parts that were drawn elsewhere. */
export function framed(label: string, width: number, height: number, parts: string): string {
  const margin = 8
  const box = `${-margin} ${-margin} ${width + 2 * margin} ${height + 2 * margin}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" width="${width + 2 * margin}" height="${height + 2 * margin}" role="img" aria-label="${label}"><style>${STYLE}</style>
${parts}
</svg>
`
}

/** Lines of the grid, across the chart. */
export function grid(options: Plot.GridYOptions = {}): Plot.Markish {
  return Plot.gridY({ stroke: 'var(--grid)', strokeOpacity: 1, ...options })
}
