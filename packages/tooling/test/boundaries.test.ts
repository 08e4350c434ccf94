import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { boundaryViolations } from '../src/boundaries.js'
import { publicPackages, ROOT } from '../src/workspace.js'

const imports = 'lint/style/noRestrictedImports'
const globals = 'lint/style/noRestrictedGlobals'
const undeclared = 'lint/correctness/noUndeclaredDependencies'
const cycle = 'lint/suspicious/noImportCycles'

/** [room, the code of a source file planted in it, the rule that must reject it] */
const planted: [room: string, code: string, rule: string][] = [
  ...publicPackages().map(({ directory }): [string, string, string] => [basename(directory), "import '@weir/unheard-of'", imports]),
  ['core', "import express from 'express'\nexport const app = express()", imports],
  ['core', "import type { Redis } from 'ioredis'\nexport type Client = Redis", imports],
  ['core', "export const fastify = await import('fastify')", imports],
  ['core', "export * from 'koa'", imports],
  ['core', "import { setTimeout } from 'node:timers'\nexport const later = setTimeout", imports],
  ['core', "import { setTimeout } from 'node:timers/promises'\nexport const later = setTimeout", imports],
  ['core', "import { redisStore } from '@weir/redis'\nexport const store = redisStore", imports],
  ['core', 'setTimeout(() => {}, 10)', globals],
  ['core', 'setInterval(() => {}, 10)', globals],
  ['core', 'setImmediate(() => {})', globals],
  ['core', 'export const now: number = Date.now()', globals],
  ['core', 'export const now: number = performance.now()', globals],
  ['core', 'export const random: number = Math.random()', 'plugin'],
  ['core', "import type { B } from './planted-cycle.ts'\nexport type A = B | 2", cycle],
  ['redis', "import express from 'express'\nexport const app = express()", imports],
  ['redis', "import { storeContract } from '@weir/testing'\nexport const contract = storeContract", imports],
  ['express', "import { Redis } from 'ioredis'\nexport const redis = Redis", imports],
  ['express', "import Koa from 'koa'\nexport const app = new Koa()", undeclared],
  ['fastify', "import { redisStore } from '@weir/redis'\nexport const store = redisStore", imports],
  ['fastify', "import express from 'express'\nexport const app = express()", imports],
  ['koa', "import { throttle } from '@weir/express'\nexport const other = throttle", imports],
  ['testing', "import { redisStore } from '@weir/redis'\nexport const store = redisStore", imports],
]
const fileOf = (index: number) => `src/planted-${index}.ts`

/** A copy of all files that the import rules read: the configurations, manifests and sources of the public packages. */
function copyOfTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'weir-boundaries-'))
  for (const file of ['.biome.json', '.gitignore', 'package.json']) cpSync(join(ROOT, file), join(copy, file))
  for (const { directory } of publicPackages()) {
    const target = join(copy, 'packages', basename(directory))
    mkdirSync(target, { recursive: true })
    for (const entry of readdirSync(directory)) {
      if (entry === 'src' || entry.endsWith('.json') || entry.endsWith('.grit'))
        cpSync(join(directory, entry), join(target, entry), { recursive: true })
    }
  }
  return copy
}

describe('the import rules', () => {
  let copy: string
  let before: ReturnType<typeof boundaryViolations>
  let after: ReturnType<typeof boundaryViolations>

  beforeAll(() => {
    copy = copyOfTree()
    before = boundaryViolations(copy)
    for (const [index, [room, code]] of planted.entries()) {
      writeFileSync(join(copy, 'packages', room, fileOf(index)), `${code}\n`)
      if (code.includes('planted-cycle')) {
        writeFileSync(
          join(copy, 'packages', room, 'src/planted-cycle.ts'),
          `import type { A } from './planted-${index}.ts'\nexport type B = A | 1\n`,
        )
      }
    }
    after = boundaryViolations(copy)
  })
  afterAll(() => rmSync(copy, { recursive: true, force: true }))

  it('find nothing in the packages as they are', () => {
    expect(before).toEqual([])
  })

  it.each(planted.map(([room, code, rule], index) => ({ room, line: code.split('\n')[0], rule, index })))(
    'reject in $room: $line',
    ({ room, rule, index }) => {
      const found = after.filter(({ file }) => file === `packages/${room}/${fileOf(index)}`).map((violation) => violation.rule)
      expect(found).toContain(rule)
    },
  )

  it('pass over files that others make and remove meanwhile', () => {
    // To Biome, a broken link looks like a file that was removed after its folder was read.
    for (const file of [
      '_tmp_1_ab',
      'packages/website/.vitepress/.temp/page.js',
      'packages/website/.vitepress/config.ts.timestamp-1-ab.mjs',
    ]) {
      mkdirSync(dirname(join(copy, file)), { recursive: true })
      symlinkSync('nowhere', join(copy, file))
    }
    expect(boundaryViolations(copy)).toHaveLength(after.length)
    symlinkSync('nowhere', join(copy, 'packages/core/src/gone.ts'))
    expect(() => boundaryViolations(copy)).toThrow(/in packages\/core\/src\/gone\.ts/)
    rmSync(join(copy, 'packages/core/src/gone.ts'))
  })

  it('report a broken configuration instead of passing', () => {
    appendFileSync(join(copy, '.biome.json'), '}{')
    expect(() => boundaryViolations(copy)).toThrow(/Biome/)
  })
})
