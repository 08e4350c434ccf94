import { SvgBrush } from '../picture/brush.ts'
import { Film } from '../picture/film.ts'
import { heightOf, type Palette, paint, paintGround } from '../picture/paint.ts'
import type { LanesOutcome } from '../runs/lanes.ts'

export { type Outcome, run } from '../runs/run.ts'
export { readAddress } from '../settings/settings.ts'
export { embeddedAddress, STILLS, type Still } from './stills.ts'

/** A moment of a film as parts of an SVG, drawn like on the page. */
export function pictureOf(outcome: LanesOutcome, seconds: number, width: number, palette: Palette): { height: number; parts: string } {
  const film = new Film(outcome)
  const frame = { film, time: seconds * 1000, speed: 1, width, palette, still: false }
  const brush = new SvgBrush()
  paintGround(brush, frame)
  paint(brush, frame)
  return { height: heightOf(film.nodes), parts: brush.toString() }
}
