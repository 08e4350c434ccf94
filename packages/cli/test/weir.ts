import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { afterAll } from 'vitest'
import { run } from '../src/program.ts'

export interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

type Input = Iterable<string | Buffer> | AsyncIterable<string>

/** Runs the command in this process, in a pipe or a terminal. The input may depend on the output so far. */
export async function weir(
  args: readonly string[],
  { stdin = [] as Input | ((written: { readonly out: string }) => Input), tty = false, env = {}, columns = 120 } = {},
): Promise<Ended> {
  const written = { out: '', err: '' }
  const stream = (name: 'out' | 'err') =>
    Object.assign(
      new Writable({
        write(piece, _encoding, done) {
          written[name] += String(piece)
          done()
        },
      }),
      { isTTY: tty, columns },
    )
  const input = Readable.from(typeof stdin === 'function' ? stdin(written) : stdin, { objectMode: false })
  const surroundings = { stdin: input, stdout: stream('out'), stderr: stream('err'), env }
  const code = await run(args, surroundings, '1.2.3')
  return { code, ...written }
}

let folder: string | undefined
afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
})

/** Writes a file in the folder of this test. Returns its path. */
export function file(name: string, content: string | Buffer): string {
  folder ??= mkdtempSync(join(tmpdir(), 'weir-cli-'))
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

/** Start of the logs in the tests, a whole minute. */
export const START = Date.UTC(2026, 2, 7, 12)

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const two = (value: number): string => String(value).padStart(2, '0')

/** A line of the Combined Log Format, with its seconds since the start. */
export function line(seconds: number, client: string, request = 'GET / HTTP/1.1', agent = 'curl/8.5.0'): string {
  const at = new Date(START + seconds * 1000)
  const day = `${two(at.getUTCDate())}/${MONTHS[at.getUTCMonth()]}/${at.getUTCFullYear()}`
  const time = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`
  return `${client} - - [${day}:${time} +0000] "${request}" 200 512 "-" "${agent}"\n`
}

/** Writes rules with one policy to a file. Returns its path. */
export function rules(name: string, policy: object, version = 1): string {
  return file(name, JSON.stringify({ version, policies: [{ name: 'client', key: 'ip', limit: 10, interval: '1m', ...policy }] }))
}
