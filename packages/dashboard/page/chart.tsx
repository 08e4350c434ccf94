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
  /** Whether the line is dashed, so that it differs without its colour too. */
  readonly dashed?: boolean
}

/** An outage of the store in milliseconds since the Unix epoch. The end is null while it continues. */
type Outage = readonly [from: number, to: number | null]

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
  readonly outages?: readonly Outage[]
  /** Controls beside the title. */
  readonly children?: ComponentChildren
}

const HEIGHT = 200
const NO_OUTAGE: readonly Outage[] = []
/** Milliseconds. A line doesn't join two points that are further apart, because the values between them are unknown. */
const LONGEST_STEP = 40_000
/** The shortest range in seconds. With a single point the axis would cover days. */
const SHORTEST = 10
const WHOLE_STEPS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12].flatMap((step) => [step, 2 * step, 5 * step])

export function Chart({ title, unit, points, series, format, whole = false, outages = NO_OUTAGE, children }: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>()
  const bands = useRef(outages)
  bands.current = outages
  useScheme(() => plot.current?.redraw())

  useEffect(() => {
    const element = box.current
    if (element === null) return undefined
    const made = new uPlot(options(element.clientWidth, series, format, whole, bands), dataOf(points, series), element)
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
  }, [points, series, outages])

  const last = points.at(-1)
  const said = series.map(({ label, index }) => {
    const most = Math.max(0, ...points.map((point) => point[index] ?? 0))
    return `${label}: now ${shown(last?.[index], format)}, at most ${format(most)}`
  })
  const shaded = outages.length > 0 && points.length > 0 && outages.some(([, to]) => to === null || to > (points[0]?.[0] ?? 0))
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>{title}</h2>
        <span>{unit}</span>
        {children}
        <ul class="legend">
          {shaded && <li class="outage">Store down</li>}
          {series.map(({ label, index, color, dashed }) => (
            <li key={label} class={dashed === true ? 'dashed' : ''} style={{ '--mark': `var(${color})` }}>
              {label} <b>{shown(last?.[index], format)}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div
        ref={box}
        class="plot"
        role="img"
        aria-label={`${title}, ${unit}. ${said.join('. ')}.${shaded ? ' Shaded: the store was down.' : ''}`}
      />
    </figure>
  )
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return typeof value === 'number' ? format(value) : 'not known'
}

function dataOf(points: readonly Moment[], series: readonly Series[]): uPlot.AlignedData {
  const moments: Moment[] = []
  for (const point of points) {
    const before = moments.at(-1)
    if (before !== undefined && point[0] - before[0] > LONGEST_STEP) moments.push([before[0] + 1])
    moments.push(point)
  }
  return [moments.map(([time]) => time / 1_000), ...series.map(({ index }) => moments.map((point) => point[index] ?? null))]
}

/** Draws a band for each outage behind the lines. */
function drawOutages(plot: uPlot, outages: readonly Outage[]): void {
  const { ctx, bbox } = plot
  ctx.save()
  ctx.fillStyle = `color-mix(in srgb, ${color('--no')()} 14%, transparent)`
  for (const [from, to] of outages) {
    const left = Math.max(bbox.left, plot.valToPos(from / 1_000, 'x', true))
    const right = Math.min(bbox.left + bbox.width, to === null ? Number.POSITIVE_INFINITY : plot.valToPos(to / 1_000, 'x', true))
    // A short outage stays visible as a line.
    if (right >= bbox.left && left <= bbox.left + bbox.width) ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height)
  }
  ctx.restore()
}

/** Reads colours at each drawing, because a canvas does not follow the style sheet. */
function color(name: string): () => string {
  return () => getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

function options(
  width: number,
  series: readonly Series[],
  format: (value: number) => string,
  whole: boolean,
  bands: { readonly current: readonly Outage[] },
): uPlot.Options {
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
    hooks: { drawClear: [(plot) => drawOutages(plot, bands.current)] },
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
      ...series.map(({ label, color: name, fill, dashed }) => ({
        label,
        stroke: color(name),
        width: 2,
        points: { show: false },
        ...(dashed === true && { dash: [6, 4] }),
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
