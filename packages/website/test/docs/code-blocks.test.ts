import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '@weir/tooling/run'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Block, blocksOf, PACKAGE, pages, ROOT } from './pages.ts'

const HOME = 'packages/website/src/site/home.md'
// The home page has tabs, whose names are in brackets.
const home = readFileSync(join(ROOT, HOME), 'utf8').replace(/^(```.*) \[\w+\]$/gm, '$1')

// Blocks with `ts check` must compile. Blocks with `ts run` must also run, and print the `text` block that follows. Other blocks are
// fragments, which would not compile alone.
const blocks = [...pages(), { path: HOME, text: home }].flatMap(blocksOf)
const checked = blocks.filter(({ info }) => info === 'ts check' || info === 'ts run')
const directory = join(PACKAGE, 'dist', 'blocks')

const fileOf = (block: Block): string => `${block.page.replaceAll(/[^\w]+/g, '-')}-${block.line}.ts`

let problems: readonly string[] = []

beforeAll(async () => {
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  for (const block of checked) writeFileSync(join(directory, fileOf(block)), `${block.code}\n\nexport {}\n`)
  const options = {
    extends: '../../tsconfig.docs.json',
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false, experimentalDecorators: true },
    include: ['*.ts'],
  }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(options))
  const { output } = await run(join(PACKAGE, 'node_modules', '.bin', 'tsc'), ['-p', directory, '--pretty', 'false'], { cwd: directory })
  problems = output.split('\n')
}, 120_000)

describe('the code in the documentation', () => {
  test.each(checked.map((block) => [`${block.page}:${block.line}`, block] as const))('%s compiles', (_where, block) => {
    expect(problems.filter((problem) => problem.includes(fileOf(block)))).toEqual([])
  })

  const runnable = checked.filter(({ info }) => info === 'ts run')
  test.each(runnable.map((block) => [`${block.page}:${block.line}`, block] as const))(
    '%s prints what the page says',
    { timeout: 120_000 },
    async (_where, block) => {
      const args = ['--conditions=@weir/source', '--import', 'tsx', fileOf(block)]
      const { status, output } = await run(process.execPath, args, { cwd: directory })
      if (block.output !== undefined) expect(output.trim()).toBe(block.output.trim())
      expect(status, output).toBe(0)
    },
  )
})
