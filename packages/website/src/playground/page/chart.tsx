import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { useScheme } from './palette.ts'
import { Scroll } from './scroll.tsx'

export interface Series {
  readonly label: string
  /** A variable of the style sheet. */
  readonly color: string
  readonly values: readonly (number | null)[]
}

interface ChartProps {
  readonly title: string
  readonly unit: string
  readonly x: { readonly label: string; readonly values: readonly number[] }
  /** Drawn as a line. */
  readonly limit: number
  readonly series: readonly Series[]
  readonly format: (value: number) => string
}

const HEIGHT = 230
/** Number of solid curves. The last curve is always broken, so that a curve below it stays visible. */
const WHOLE = 3
/** The most rows of a table. For a longer curve it shows every n-th point. */
const MOST_ROWS = 40

/** Curves, and the table behind them. */
export function Chart({ title, unit, x, limit, series, format }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>()
  useScheme(() => plot.current?.redraw())
  const data: uPlot.AlignedData = [[...x.values], ...series.map(({ values }) => [...values]), x.values.map(() => limit)]
  const shape = series.map(({ label }) => label).join()
  useEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const made = new uPlot(options(element.clientWidth, series, x.label, format), data, element)
    const curtain = document.createElement('div')
    curtain.className = 'curtain'
    made.over.append(curtain)
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [shape, x.label])
  useEffect(() => plot.current?.setData(data), [x.values, series, limit])
  const said = series.map(({ label, values }) => `${label}: at most ${format(Math.max(0, ...values.map((value) => value ?? 0)))}`)
  const stride = Math.max(1, Math.ceil(x.values.length / MOST_ROWS))
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <span>{unit}</span>
        <ul class="legend">
          {series.map(({ label, color }, index) => (
            <li key={label} class={isBroken(index, series) ? 'broken' : undefined} style={{ '--mark': `var(${color})` }}>
              {label}
            </li>
          ))}
          <li class="line" style={{ '--mark': 'var(--soft)' }}>
            the limit
          </li>
        </ul>
      </figcaption>
      <div ref={box} class="plot" role="img" aria-label={`${title}, ${unit}. ${said.join('. ')}.`} />
      <details>
        <summary>{title}, as a table</summary>
        <Scroll label={title}>
          <table>
            <thead>
              <tr>
                <th scope="col">{x.label}</th>
                {series.map(({ label }) => (
                  <th scope="col" key={label}>
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {x.values.map((at, index) =>
                index % stride > 0 ? null : (
                  <tr key={at}>
                    <th scope="row">{at}</th>
                    {series.map(({ label, values }) => (
                      <td key={label}>{format(values[index] ?? 0)}</td>
                    ))}
                  </tr>
                ),
              )}
            </tbody>
          </table>
        </Scroll>
      </details>
    </figure>
  )
}

function isBroken(index: number, all: readonly Series[]): boolean {
  return index >= WHOLE || (index > 0 && index === all.length - 1)
}

/** Reads colours at each drawing, because a canvas does not follow the style sheet. */
function color(name: string): () => string {
  return () => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

function options(width: number, series: readonly Series[], label: string, format: (value: number) => string): uPlot.Options {
  const axis = {
    stroke: color('--soft'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  }
  return {
    width,
    height: HEIGHT,
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 } },
    scales: { x: { time: false }, y: { range: (_plot, low, high) => [Math.min(0, low), Math.max(high * 1.1, 1)] } },
    axes: [
      { ...axis, space: 60, size: 24, label, labelFont: axis.font, labelSize: 16 },
      { ...axis, size: 60, values: (_plot, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...series.map(({ label: name, color: stroke }, index) => ({
        label: name,
        stroke: color(stroke),
        width: 2,
        ...(isBroken(index, series) && { dash: [9, 7] }),
        points: { show: false },
      })),
      { label: 'the limit', stroke: color('--soft'), width: 1, dash: [5, 4], points: { show: false } },
    ],
  }
}
