import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { Figure } from './figure.ts'
import { framed } from './svg.ts'

const FILE = 'demo.svg'
const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
/** Size of a character and of a line, in pixels. */
const [WIDTH, HEIGHT] = [7.8, 19]
const FONT = 'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="13"'
const ESCAPE = '\u001b'
const SEQUENCE = new RegExp(`(${ESCAPE}\\[\\d+m)`)
/** How the demo's escape sequences change the style of the text after them. */
const STYLES: Readonly<Record<string, Partial<Style>>> = {
  1: { weight: 'bold' },
  2: { color: 'var(--muted)' },
  22: { weight: 'normal', color: 'var(--ink)' },
  31: { color: 'var(--second)' },
  32: { color: 'var(--third)' },
  33: { color: 'var(--second)' },
  39: { color: 'var(--ink)' },
  90: { color: 'var(--grid)' },
}

interface Style {
  readonly weight: string
  readonly color: string
}

/** The last frame of a run of the demo, as a picture. It needs the program `script`, because the demo draws only in a terminal. */
export const demo: Figure = {
  name: 'demo',
  makes: [FILE],
  about: 'the last frame of the demo',
  make: async () => ({ charts: { [FILE]: picture(lastFrame()) } }),
}

function lastFrame(): string[] {
  const command = 'stty cols 110 rows 45; npx -y pnpm --silent demo --duration 20'
  const output = execFileSync('script', ['-qec', command, '/dev/null'], { cwd: ROOT, encoding: 'utf8', input: '' })
  // The demo leaves the alternate screen, repeats its last frame, and prints the summary.
  const frame = output.slice(output.lastIndexOf(`${ESCAPE}[?1049l`) + 8).split(`${ESCAPE}[1mDone`, 1)[0] ?? ''
  return frame.trim().split(/\r?\n/)
}

function picture(lines: readonly string[]): string {
  const columns = Math.max(...lines.map((line) => stripVTControlCharacters(line).length))
  return framed(
    'The demo in a terminal: three gateways, how many requests each has allowed and rejected, and the client that exceeds its limit',
    Math.ceil(columns * WIDTH),
    lines.length * HEIGHT,
    lines.map((line, at) => textOf(line, (at + 0.75) * HEIGHT)).join('\n'),
  )
}

/** One line. Each part starts at its own column, so that the columns stay in place whatever font the reader has. */
function textOf(line: string, y: number): string {
  let style: Style = { weight: 'normal', color: 'var(--ink)' }
  let column = 0
  const parts: string[] = []
  for (const part of line.split(SEQUENCE)) {
    const code = part.startsWith(ESCAPE) ? part.slice(2, -1) : undefined
    if (code !== undefined) style = { ...style, ...STYLES[code] }
    else if (part !== '') {
      const start = column + part.length - part.trimStart().length
      const text = part.trim()
      if (text !== '')
        parts.push(
          `<tspan x="${round(start * WIDTH)}" textLength="${round(text.length * WIDTH)}" lengthAdjust="spacingAndGlyphs" font-weight="${style.weight}" fill="${style.color}">${escaped(text)}</tspan>`,
        )
      column += part.length
    }
  }
  return `<text y="${round(y)}" xml:space="preserve" ${FONT}>${parts.join('')}</text>`
}

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[sign] as string)
}

function round(value: number): number {
  return Number(value.toFixed(1))
}
