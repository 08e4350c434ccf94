import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { clock } from './format.ts'

export interface Series {
  readonly label: string
  readonly index: 1 | 2 | 3
  /** Name of a variable of the style sheet. */
  readonly color: string
  readonly fill: boolean
}

/** A time in milliseconds since the Unix epoch, and the values at that time. */
type Moment = readonly [time: number, ...values: (number | null)[]]

interface ChartProps {
  readonly title: string
  readonly unit: string
  readonly points: readonly Moment[]
  readonly series: readonly Series[]
  readonly format: (value: number) => string
  /** Whether all values are whole numbers. */
  readonly whole?: boolean
  /** Controls beside the title. */
  readonly children?: ComponentChildren
}

const HEIGHT = 200
/** The shortest range in seconds. With a single point the axis would cover days. */
const SHORTEST = 10
const WHOLE_STEPS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12].flatMap((step) => [step, 2 * step, 5 * step])

export function Chart({ title, unit, points, series, format, whole = false, children }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>()
  useScheme(() => plot.current?.redraw())

  useEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const made = new uPlot(options(element.clientWidth, series, format, whole), dataOf(points, series), element)
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [])

  useEffect(() => {
    plot.current?.setData(dataOf(points, series))
  }, [points, series])

  const last = points.at(-1)
  const said = series.map(({ label, index }) => {
    const most = Math.max(0, ...points.map((point) => point[index] ?? 0))
    return `${label}: now ${shown(last?.[index], format)}, at most ${format(most)}`
  })
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>{title}</h2>
        <span>{unit}</span>
        {children}
        <ul class="legend">
          {series.map(({ label, index, color }) => (
            <li key={label} style={{ '--mark': `var(${color})` }}>
              {label} <b>{shown(last?.[index], format)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={box} class="plot" role="img" aria-label={`${title}, ${unit}. ${said.join('. ')}.`} />
    </figure>
  )
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return typeof value === 'number' ? format(value) : 'not known'
}

function dataOf(points: readonly Moment[], series: readonly Series[]): uPlot.AlignedData {
  return [points.map(([time]) => time / 1_000), ...series.map(({ index }) => points.map((point) => point[index] ?? null))]
}

/** Reads colours at each drawing, because a canvas does not follow the style sheet. */
function color(name: string): () => string {
  return () => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

function options(width: number, series: readonly Series[], format: (value: number) => string, whole: boolean): uPlot.Options {
  const axis = {
    stroke: color('--soft'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  }
  return {
    width,
    height: HEIGHT,
    // Half of a time label below the last point needs space on the right.
    padding: [8, 28, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 7 } },
    scales: {
      x: { range: (_plot, low, high) => (low === null ? [low, high] : [Math.min(low, high - SHORTEST), high]) },
      y: { range: (_plot, _low, high) => [0, Math.max(high * 1.15, 1)] },
    },
    axes: [
      { ...axis, space: 80, size: 30, values: (_plot, ticks) => ticks.map((second) => clock(second * 1_000)) },
      { ...axis, size: 56, ...(whole && { incrs: WHOLE_STEPS }), values: (_plot, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...series.map(({ label, color: name, fill }) => ({
        label,
        stroke: color(name),
        width: 2,
        points: { show: false },
        ...(fill && { fill: () => `color-mix(in srgb, ${color(name)()} 16%, transparent)` }),
      })),
    ],
  }
}

/** Calls `changed` when the user's colour scheme changes. */
function useScheme(changed: () => void): void {
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)')
    // Waits until the style sheet has changed.
    const later = (): void => void requestAnimationFrame(changed)
    query.addEventListener('change', later)
    return () => query.removeEventListener('change', later)
  }, [])
}
