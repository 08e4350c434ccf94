import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const PACKAGE: string = fileURLToPath(new URL('../..', import.meta.url))
export const ROOT: string = fileURLToPath(new URL('../../../..', import.meta.url))

/** A Markdown page of the documentation. */
export interface Page {
  /** Relative to the repository. */
  readonly path: string
  readonly text: string
}

/** The README, everything in `docs/`, and the READMEs of the packages. */
export function pages(): Page[] {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  const packages = readdirSync(join(ROOT, 'packages')).map((name) => join('packages', name, 'README.md'))
  const paths = [
    'README.md',
    ...docs.filter((file) => file.endsWith('.md')).map((file) => join('docs', file)),
    ...packages.filter((file) => existsSync(join(ROOT, file))),
  ]
  return paths.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

/** A block of code in a page. */
export interface Block {
  readonly page: string
  readonly line: number
  /** The words after the fence, e.g. `ts run`. */
  readonly info: string
  readonly code: string
  /** The block of plain text directly after it, if there is one. */
  readonly output: string | undefined
}

export function blocksOf({ path, text }: Page): Block[] {
  const blocks: (Block & { readonly end: number })[] = []
  const lines = text.split('\n')
  for (let at = 0; at < lines.length; at++) {
    const fence = /^(```+)(.*)$/.exec(lines[at] as string)
    if (fence === null) continue
    const end = lines.indexOf(fence[1] as string, at + 1)
    if (end < 0) throw new Error(`${path}:${at + 1}: the block does not end`)
    blocks.push({
      page: path,
      line: at + 1,
      info: (fence[2] as string).trim(),
      code: lines.slice(at + 1, end).join('\n'),
      output: undefined,
      end,
    })
    at = end
  }
  return blocks.map((block, index) => {
    const next = blocks[index + 1]
    const between = next === undefined ? ['x'] : lines.slice(block.end + 1, next.line - 1)
    return next?.info === 'text' && between.every((line) => line.trim() === '') ? { ...block, output: next.code } : block
  })
}
