import type { Writable } from 'node:stream'
import pc from 'picocolors'
import type { Colors } from './colors.ts'

/** Milliseconds between two frames. */
const FRAME = 200

/** Enters the alternate screen, so that the earlier content stays, hides the cursor, and turns off line wrapping. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l'
const HOME = '\x1b[H'
const REST_OF_LINE = '\x1b[K'
const REST_OF_SCREEN = '\x1b[J'
/** Terminals that support these codes draw the text between them in one step. */
const BEGIN = '\x1b[?2026h'
const END = '\x1b[?2026l'

/** The parts of a terminal that a frame uses. */
export interface Terminal extends Writable {
  readonly isTTY?: boolean
  readonly rows?: number
}

/**
 * The output of the demo: in place in a terminal, as plain lines elsewhere, none with `--json`. Each frame is drawn completely from the
 * first line on. It doesn't depend on the earlier content, so a resize of the window breaks nothing.
 */
export class Screen {
  readonly colors: Colors
  readonly mode: 'live' | 'lines' | 'silent'
  readonly #out: Terminal
  readonly #leave = (): void => void this.#out.write(LEAVE)
  #draw: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(json: boolean, out: Terminal = process.stdout) {
    const terminal = out.isTTY === true && process.env['TERM'] !== 'dumb'
    this.mode = json ? 'silent' : terminal ? 'live' : 'lines'
    this.colors = pc.createColors(terminal && pc.isColorSupported)
    this.#out = out
  }

  /** Draws `frame` repeatedly in the same place. Does nothing without a terminal. */
  animate(frame: () => string): void {
    if (this.mode !== 'live') return
    this.#stop()
    if (this.#draw === undefined) {
      this.#out.write(ENTER)
      // Restores the terminal, however the process ends.
      process.once('exit', this.#leave)
    }
    const draw = (): void => void this.#out.write(placed(frame(), this.#out.rows ?? 24))
    this.#draw = draw
    this.#out.on('resize', draw)
    this.#timer = setInterval(draw, FRAME)
    draw()
  }

  /** Ends the animation and prints `last` as text. */
  rest(last?: string): void {
    if (this.#draw === undefined) return
    this.#stop()
    this.#draw = undefined
    process.off('exit', this.#leave)
    this.#leave()
    if (last !== undefined) this.#out.write(`${last}\n`)
  }

  /** Prints a line of progress, if the output is not a terminal. */
  line(text: string): void {
    if (this.mode === 'lines') this.#out.write(`${text}\n`)
  }

  /** Prints text before and after the frames, in a terminal and elsewhere. */
  print(text: string): void {
    if (this.mode !== 'silent') this.#out.write(`${text}\n`)
  }

  #stop(): void {
    clearInterval(this.#timer)
    if (this.#draw !== undefined) this.#out.off('resize', this.#draw)
  }
}

/** A frame from the first line on. If the window is too low, empty lines are left out, then the first ones. */
export function placed(frame: string, rows: number): string {
  const lines = frame.split('\n')
  const fitting = lines.length <= rows ? lines : lines.filter((line) => line !== '').slice(-rows)
  return BEGIN + HOME + fitting.map((line) => line + REST_OF_LINE).join('\r\n') + REST_OF_SCREEN + END
}
