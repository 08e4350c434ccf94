import { KIND } from '../tape/tape.ts'
import type { Brush } from './brush.ts'
import { type Film, type NodeMoment, upTo } from './film.ts'

/** Colours of the style sheet. */
export interface Palette {
  readonly ink: string
  readonly soft: string
  readonly line: string
  readonly track: string
  readonly ok: string
  readonly no: string
  readonly warn: string
  readonly accent: string
}

export interface Frame {
  readonly film: Film
  /** Milliseconds. */
  readonly time: number
  /** Milliseconds of the film per millisecond. */
  readonly speed: number
  readonly width: number
  readonly palette: Palette
  /** Without moving dots. */
  readonly still: boolean
}

const LABEL = 66
const STORE = 54
/** Milliseconds for which a message is visible at least, the first rejection is highlighted, and arrivals are visible. */
const SEEN = 350
const SHINES = 900
const COMES = 600
const MOST_DOTS = 400
const SIZE = 12
/** Pixels of an arriving request. */
const MARK = 2

export function rowHeight(nodes: number): number {
  return Math.max(9, Math.min(34, Math.floor(360 / nodes)))
}

export function heightOf(nodes: number): number {
  return rowHeight(nodes) * nodes + 26
}

interface Places {
  readonly strip: number
  readonly bar: number
  readonly barWidth: number
  readonly store: number
  readonly row: number
  /** Height of a lane's bar. */
  readonly thick: number
  /** Size of the text. */
  readonly size: number
}

function placesOf({ width, film }: Frame): Places {
  const strip = width < 520 ? 0 : Math.round(width * 0.14)
  const store = width - STORE
  const bar = LABEL + strip + 8
  const gap = Math.round(width * 0.26)
  const row = rowHeight(film.nodes)
  const small = row < 14
  return { strip, bar, barWidth: store - gap - bar, store, row, thick: row - (small ? 2 : 6), size: small ? 9 : SIZE }
}

/** The values that the resting parts depend on. While they stay the same, the ground isn't drawn again. */
export function groundOf({ film, time, width }: Frame): string {
  let storeDown = ''
  for (let node = 0; node < film.nodes; node++) storeDown += film.storeDown(node, time) ? 1 : 0
  return `${width} ${storeDown} ${isFaulty(film, time)}`
}

/** Draws the resting parts: a lane for each process, the limit, the store. */
export function paintGround(brush: Brush, frame: Frame): void {
  const { film, time, palette, width } = frame
  const places = placesOf(frame)
  const { bar, barWidth, row, thick, size, store } = places
  const height = row * film.nodes
  const tracks: number[] = []
  for (let node = 0; node < film.nodes; node++) {
    const storeDown = film.storeDown(node, time)
    const text = storeDown ? `${node + 1} alone` : `process ${node + 1}`
    brush.text(storeDown ? palette.warn : palette.soft, size, 'left', text, 0, node * row + thick / 2 + 1)
    tracks.push(bar, node * row + 1, barWidth, thick)
  }
  tracks.push(store, 0, width - store, height)
  brush.rects(palette.track, tracks)
  brush.fence(palette.soft, bar + barWidth, height)
  brush.text(palette.soft, SIZE, 'right', 'the limit', bar + barWidth, height + 12)
  const faulty = isFaulty(film, time)
  brush.frame(faulty ? palette.no : palette.line, faulty ? 3 : 1, store + 0.5, 0.5, width - store - 1, height - 1)
  if (faulty) brush.text(palette.ink, SIZE, 'right', 'store: fault', width, height + 12)
}

/** Draws the moving parts: arriving requests, the counts of each process, messages to the store and back. */
export function paint(brush: Brush, frame: Frame): void {
  const { film, time, palette, speed } = frame
  const places = placesOf(frame)
  const { bar, barWidth, row, thick, strip } = places
  const scale = barWidth / film.limit
  const own: number[] = []
  const others: number[] = []
  const full: number[] = []
  const moments = Array.from({ length: film.nodes }, (_, node) => film.node(node, time))
  for (const [node, moment] of moments.entries()) {
    const top = node * row + 1
    const part = Math.min(barWidth, moment.allowed * scale)
    if (part > 0) own.push(bar, top, part, thick)
    const known = Math.min(barWidth - part, moment.others * scale)
    if (known > 0) others.push(bar + part, top, known, thick)
    if (moment.provenAt === undefined) continue
    full.push(bar + barWidth, top, 5, thick)
  }
  if (strip > 0 && !frame.still) {
    for (let node = 0; node < film.nodes; node++) {
      arrivals(full, film.rejected[node], frame, places, node)
      arrivals(own, film.allowed[node], frame, places, node)
    }
  }
  brush.rects(palette.no, full)
  brush.rects(palette.ok, own)
  brush.rects(palette.accent, others, 0.35)
  for (const [node, moment] of moments.entries()) proof(brush, frame, places, node, moment, SHINES * speed)
  store(brush, frame, places)
  if (!frame.still) dots(brush, frame, places)
}

/** The moment at which a process starts to reject. */
function proof(brush: Brush, { time, palette }: Frame, places: Places, node: number, { provenAt }: NodeMoment, shines: number): void {
  if (provenAt === undefined) return
  const fresh = 1 - (time - provenAt) / shines
  if (fresh <= 0) return
  const { bar, barWidth, row, thick } = places
  brush.frame(palette.no, 2, bar, node * row + 1, barWidth + 5, thick, Number(fresh.toFixed(2)))
  if (row >= 14) brush.text(palette.ink, SIZE, 'right', 'confirmed: rejects', bar + barWidth - 6, node * row + thick / 2 + 1)
}

/** Recent requests, the newest beside the lane. Adjacent requests become one mark. */
function arrivals(marks: number[], list: Float64Array | undefined, { time, speed }: Frame, places: Places, node: number): void {
  if (list === undefined) return
  const { row, strip, bar, thick } = places
  const span = COMES * speed
  const from = upTo(list, time - span)
  const until = upTo(list, time)
  const top = Math.round(node * row + 1 + thick * 0.2)
  const height = Math.round(thick * 0.6)
  // Draws at most one request per column.
  const stride = Math.max(1, Math.ceil((until - from) / strip))
  let begin = Number.NaN
  let end = Number.NaN
  for (let index = from; index < until; index += stride) {
    const x = Math.round(bar - 5 - ((time - (list[index] as number)) / span) * (strip - 6))
    if (x <= end) end = x + MARK
    else {
      if (end > begin) marks.push(begin, top, end - begin, height)
      begin = x
      end = x + MARK
    }
  }
  if (end > begin) marks.push(begin, top, end - begin, height)
}

function store(brush: Brush, { film, time, palette, width }: Frame, { store: left, row }: Places): void {
  const height = row * film.nodes
  const faulty = isFaulty(film, time)
  const total = film.stored(time)
  const filled = Math.min(1, total / film.limit) * height
  const color = faulty ? palette.soft : total >= film.limit ? palette.no : palette.accent
  if (filled > 0) brush.rects(color, [left + 1, height - filled, width - left - 2, filled])
  if (!faulty) brush.text(palette.ink, SIZE, 'right', `store: ${Math.round(total)}`, width, height + 12)
}

function isFaulty({ fault }: Film, time: number): boolean {
  return fault !== undefined && time >= fault.from && time < fault.until
}

function dots(brush: Brush, frame: Frame, places: Places): void {
  const { film, time, speed, palette } = frame
  const { sent, handled, arrived, node, kind } = film.messages
  const left = places.bar + places.barWidth + 8
  const way = places.store - left
  const syncs: number[] = []
  const heartbeats: number[] = []
  const announced: number[] = []
  const lost: number[] = []
  let drawn = 0
  // The slowest message takes at most a second, the timeout of a process.
  const earliest = time - Math.max(SEEN * speed, 1000)
  for (let index = upTo(sent, time) - 1; index >= 0 && (sent[index] as number) > earliest && drawn < MOST_DOTS; index--) {
    const from = sent[index] as number
    const never = arrived[index] === Number.POSITIVE_INFINITY
    const real = never ? 0 : (arrived[index] as number) - from
    const span = Math.max(real, SEEN * speed)
    const part = (time - from) / span
    if (part > 1) continue
    drawn++
    const there = never ? 0.5 : real > 0 ? ((handled[index] as number) - from) / real : 0.5
    const told = kind[index] === KIND.announcement
    const place = told ? 1 - part : part < there ? part / there : never ? 1 : 1 - (part - there) / (1 - there)
    const list = never && part > 0.5 ? lost : told ? announced : kind[index] === KIND.heartbeat ? heartbeats : syncs
    list.push(left + place * way, ((node[index] as number) + 0.5) * places.row - 2)
  }
  if (heartbeats.length > 0) brush.dots(palette.accent, 2, heartbeats, 0.4)
  if (syncs.length > 0) brush.dots(palette.accent, 4, syncs)
  if (announced.length > 0) brush.dots(palette.warn, 4, announced)
  if (lost.length > 0) brush.dots(palette.no, 4, lost)
}
