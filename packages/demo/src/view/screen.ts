import type { Writable } from 'node:stream'
import { createLogUpdate } from 'log-update'
import pc from 'picocolors'
import type { Colors } from './colors.ts'

/** Between two frames, in milliseconds. */
const FRAME = 200

/**
 * Where the demo shows what happens: in place in a terminal, as plain lines elsewhere, nowhere with `--json`.
 */
export class Screen {
  readonly colors: Colors
  readonly mode: 'live' | 'lines' | 'silent'
  readonly #out: Writable
  readonly #update: ReturnType<typeof createLogUpdate> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(json: boolean, out: NodeJS.WriteStream = process.stdout) {
    const terminal = out.isTTY === true && process.env['TERM'] !== 'dumb'
    this.mode = json ? 'silent' : terminal ? 'live' : 'lines'
    this.colors = pc.createColors(terminal && pc.isColorSupported)
    this.#out = out
    this.#update = this.mode === 'live' ? createLogUpdate(out) : undefined
  }

  /** Draws `frame` again and again, in place of what was drawn before; does nothing where there is no terminal. */
  animate(frame: () => string): void {
    if (this.#update === undefined) return
    const draw = (): void => this.#update?.(frame())
    draw()
    clearInterval(this.#timer)
    this.#timer = setInterval(draw, FRAME)
  }

  /** Ends the animation and leaves its last frame, or `last`, standing. */
  rest(last?: string): void {
    clearInterval(this.#timer)
    if (this.#timer === undefined) return
    this.#timer = undefined
    if (last !== undefined) this.#update?.(last)
    this.#update?.done()
  }

  /** A line of progress where nothing can be updated in place. */
  line(text: string): void {
    if (this.mode === 'lines') this.#out.write(`${text}\n`)
  }

  /** What stands at the beginning and at the end, in a terminal and elsewhere. */
  print(text: string): void {
    if (this.mode !== 'silent') this.#out.write(`${text}\n`)
  }
}
