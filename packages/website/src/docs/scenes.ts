import * as Plot from '@observablehq/plot'
import { type Outcome, pictureOf, readAddress, run, STILLS, type Still } from '../playground/command/scenes.ts'
import { type Figure, whole } from './figure.ts'
import { COLORS, draw, framed, grid } from './svg.ts'

const WIDTH = 800
const PALETTE = {
  ink: 'var(--ink)',
  soft: 'var(--muted)',
  line: 'var(--grid)',
  track: 'var(--grid)',
  ok: 'var(--third)',
  no: 'var(--second)',
  warn: 'var(--second)',
  accent: 'var(--first)',
}
/** Colours of limiters side by side, in their order. A colour that is used again gets a broken line. */
const LINES = [COLORS.second, COLORS.third, COLORS.first] as const
const BROKEN = '5 4'
/** Widths in pixels of the key of a line, and of a character of its name. */
const KEY = 50
const CHARACTER = 6.6

/** Still pictures of the playground's scenes, from the same runs. */
export const scenes: Figure = {
  name: 'scenes',
  makes: STILLS.map(fileOf),
  about: "still pictures of the playground's scenes",
  async make() {
    const charts: Record<string, string> = {}
    for (const still of STILLS) charts[fileOf(still)] = chartOf(still, await run(readAddress(still.address)))
    return { charts }
  },
}

function fileOf({ name }: Still): string {
  return `scene-${name}.svg`
}

function chartOf({ name, at = 0 }: Still, outcome: Outcome): string {
  switch (outcome.kind) {
    case 'lanes': {
      const { height, parts } = pictureOf(outcome, at, WIDTH, PALETTE)
      return framed(`${outcome.nodes} processes and a store after ${at} seconds`, WIDTH, height, parts)
    }
    case 'curves':
      return curves(outcome)
    case 'stream':
      return stream(outcome)
    default:
      throw new Error(`The scene ${name} has no picture.`)
  }
}

function curves({ title, unit, x, limit, rows }: Extract<Outcome, { kind: 'curves' }>): string {
  const points = rows.flatMap(({ name, curve }) => curve.map((value, index) => ({ name, at: x.values[index] ?? 0, value })))
  const most = Math.max(...points.map(({ value }) => value))
  return draw({
    label: `${title}, ${unit}`,
    marginRight: KEY + CHARACTER * Math.max(...rows.map(({ name }) => name.length)),
    x: { label: `${x.label} →` },
    y: { label: `↑ ${title}`, tickFormat: whole },
    marks: [
      grid(),
      Plot.ruleY([limit], { stroke: 'currentColor', strokeDasharray: '2 3' }),
      ...rows.flatMap(({ name }, index) => {
        const own = points.filter((point) => point.name === name)
        const stroke = LINES[index % LINES.length] ?? 'currentColor'
        const strokeDasharray = index < LINES.length ? 'none' : BROKEN
        const from = Math.max(...x.values)
        // Names get a separate column, because the lines end too close to each other.
        const y = most * (1 - index * 0.09)
        return [
          Plot.line(own, { x: 'at', y: 'value', stroke, strokeWidth: 2.2, strokeDasharray }),
          Plot.text([name], {
            x: () => from,
            y: () => y,
            text: () => `${index < LINES.length ? '——' : '– –'} ${name}`,
            fill: stroke,
            textAnchor: 'start',
            fontSize: 12,
            dx: 12,
          }),
        ]
      }),
    ],
  })
}

/** Number of pictures in a row. */
const COLUMNS = 3
const GAP = 20
const BAR = 70
const ROW = 110

function stream({ came, rows, pace }: Extract<Outcome, { kind: 'stream' }>): string {
  const top = Math.max(4 * pace, 2)
  const width = (WIDTH - GAP * (COLUMNS - 1)) / COLUMNS
  const parts = rows.flatMap(({ name, went }, index) => {
    const left = (index % COLUMNS) * (width + GAP)
    const base = Math.floor(index / COLUMNS) * ROW + 24 + BAR
    const bars = (counts: readonly number[]) =>
      counts
        .map((count, bar) => {
          const high = (Math.min(count, top) / top) * BAR
          return count === 0
            ? ''
            : `M${(left + (bar * width) / counts.length).toFixed(1)} ${base}v-${high.toFixed(1)}h2v${high.toFixed(1)}z`
        })
        .join('')
    const level = (base - (pace / top) * BAR).toFixed(1)
    return [
      `<text x="${left.toFixed(1)}" y="${base - BAR - 8}" font-size="10" font-family="system-ui, sans-serif" fill="var(--ink)">${escaped(name)}</text>`,
      `<path d="${bars(came)}" fill="var(--grid)"/>`,
      `<path d="${bars(went)}" fill="var(--third)"/>`,
      `<path d="M${left.toFixed(1)} ${level}h${width.toFixed(1)}" stroke="var(--muted)" stroke-dasharray="4 3"/>`,
    ]
  })
  const label = 'Requests over time, and the requests that each limiter allowed. The broken line is the pace of the limit'
  return framed(label, WIDTH, Math.ceil(rows.length / COLUMNS) * ROW, parts.join('\n'))
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
