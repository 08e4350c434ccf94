import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { CanvasBrush, SvgBrush } from '../picture/brush.ts'
import { Film } from '../picture/film.ts'
import { type Frame, groundOf, heightOf, paint, paintGround } from '../picture/paint.ts'
import type { LanesOutcome } from '../runs/lanes.ts'
import type { Value } from '../settings/control.ts'
import type { Settings } from '../settings/settings.ts'
import { duration, percent, whole } from '../tables/format.ts'
import { Faults } from './faults.tsx'
import { palette, useScheme, VARIABLES } from './palette.ts'
import { PlayerBar } from './player-bar.tsx'
import { Scroll } from './scroll.tsx'
import { STILL, usePlayer } from './use-player.ts'

interface LanesProps {
  readonly outcome: LanesOutcome
  readonly settings: Settings
  /** Shows only the lanes. */
  readonly embedded: boolean
  /** Milliseconds of the film at which it begins. By default shortly before the fault, or at the start without a fault. */
  readonly begin: number | undefined
  readonly onChange: (values: Readonly<Record<string, Value>>) => void
}

/** Milliseconds of the film before its fault. Without a skip, a visitor would wait for two intervals. */
const BEFORE_FAULT = 2000

/** The processes as lanes. */
export function Lanes({ outcome, settings, embedded, begin, onChange }: LanesProps) {
  const film = useMemo(() => new Film(outcome), [outcome])
  const picture = useRef<Picture>()
  const ground = useRef<SVGSVGElement>(null)
  const moving = useRef<HTMLCanvasElement>(null)
  const [isOpen, setOpen] = useState(false)
  const player = usePlayer({
    length: film.length,
    begin: begin ?? beginOf(film),
    speed: 1,
    draw: (time, speed) => picture.current?.draw(film, time, speed),
  })
  useScheme(player.redraw)
  useEffect(() => {
    if (ground.current === null || moving.current === null) return undefined
    const made = new Picture(ground.current, moving.current, film.nodes)
    picture.current = made
    // Also called immediately.
    const resized = new ResizeObserver(([entry]) => {
      made.resize(Math.round(entry?.contentRect.width ?? 0))
      player.redraw()
    })
    resized.observe(moving.current)
    return () => resized.disconnect()
  }, [film])

  return (
    <section class="panel" aria-label="The cluster">
      <PlayerBar
        player={player}
        length={film.length}
        small={embedded}
        step="To the next sync or rejection"
        onStep={() => player.seek(film.next(player.now()))}
      />
      {settings.scene === 'outage' && !embedded && <Faults settings={settings} film={film} time={player.time} onChange={onChange} />}
      <Legend />
      <div
        class="lanes"
        style={{ height: `${heightOf(film.nodes)}px` }}
        role="img"
        aria-label={`${film.nodes} processes and a store.${embedded ? '' : ' The table below has the same figures.'}`}
      >
        <svg ref={ground} />
        <canvas ref={moving} />
      </div>
      {!embedded && (
        <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
          <summary>This moment as a table</summary>
          {isOpen && <NodeTable film={film} time={player.time} />}
        </details>
      )}
    </section>
  )
}

function beginOf({ fault, length }: Film): number {
  return fault === undefined || fault.from >= length ? 0 : Math.max(0, fault.from - BEFORE_FAULT)
}

/**
 * Draws moving parts on a canvas above the resting parts. The resting parts are SVG, because a browser would copy a canvas for each
 * picture even if nothing changed.
 */
class Picture {
  readonly #ground: SVGSVGElement
  readonly #moving: HTMLCanvasElement
  readonly #height: number
  #width = 0
  #drawn = ''

  constructor(ground: SVGSVGElement, moving: HTMLCanvasElement, nodes: number) {
    this.#ground = ground
    this.#moving = moving
    this.#height = heightOf(nodes)
  }

  resize(width: number): void {
    this.#width = width
    const canvas = this.#moving
    canvas.width = Math.round(width * devicePixelRatio)
    canvas.height = Math.round(this.#height * devicePixelRatio)
    canvas.getContext('2d')?.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0)
  }

  draw(film: Film, time: number, speed: number): void {
    const context = this.#moving.getContext('2d')
    if (this.#width === 0 || context === null) return
    const frame: Frame = { film, time, speed, width: this.#width, palette: palette(), still: STILL }
    const shown = groundOf(frame)
    if (shown !== this.#drawn) {
      this.#drawn = shown
      const brush = new SvgBrush()
      paintGround(brush, { ...frame, palette: VARIABLES })
      this.#ground.innerHTML = brush.toString()
    }
    context.clearRect(0, 0, this.#width, this.#height)
    paint(new CanvasBrush(context), frame)
  }
}

function Legend() {
  return (
    <ul class="legend">
      <li style={{ '--mark': 'var(--ok)' }}>allowed here</li>
      <li style={{ '--mark': 'color-mix(in srgb, var(--accent) 35%, transparent)' }}>received from others</li>
      <li style={{ '--mark': 'var(--no)' }}>rejected</li>
      <li class="dot" style={{ '--mark': 'var(--accent)' }}>
        sync
      </li>
      <li class="dot" style={{ '--mark': 'var(--warn)' }}>
        announcement
      </li>
    </ul>
  )
}

function NodeTable({ film, time }: { readonly film: Film; readonly time: number }) {
  const sum = film.sum(time)
  return (
    <Scroll label="The processes at this moment">
      <table>
        <caption>
          After {duration(time)}: {whole(sum)} allowed of {whole(film.limit)} ({percent(sum / film.limit)}). The store has{' '}
          {whole(film.stored(time))}
        </caption>
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">Allowed here</th>
            <th scope="col">Received from others</th>
            <th scope="col">Rejected</th>
            <th scope="col">Rejects since</th>
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: film.nodes }, (_, node) => {
            const { allowed, others, rejected, provenAt } = film.node(node, time)
            return (
              <tr key={node}>
                <th scope="row">
                  {node + 1}
                  {film.storeDown(node, time) && ', without the store'}
                </th>
                <td>{whole(allowed)}</td>
                <td>{whole(others)}</td>
                <td>{whole(rejected)}</td>
                <td>{provenAt === undefined ? 'allows' : duration(provenAt)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </Scroll>
  )
}
