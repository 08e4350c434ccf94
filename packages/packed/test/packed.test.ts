import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Packed, packPublicPackages } from '@weir/tooling/pack'
import { RedisServer } from '@weir/tooling/redis-servers'
import { mustRun } from '@weir/tooling/run'
import { publicPackages } from '@weir/tooling/workspace'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { compile, type Flavour, flavours, install, runProgram, snippetOf, writeProject } from './project.ts'

const names = publicPackages().map(({ manifest }) => manifest.name)
const scratch = mkdtempSync(join(tmpdir(), 'weir-packed-'))
let packed: Packed[]
let redis: RedisServer

const projectOf = (flavour: Flavour): string => join(scratch, `${flavour.module}-${flavour.language}`)

beforeAll(async () => {
  redis = await RedisServer.start()
  packed = await packPublicPackages(join(scratch, 'tarballs'))
  await Promise.all(
    flavours.map(async (flavour) => {
      await writeProject(projectOf(flavour), flavour, packed)
      await install(projectOf(flavour), flavour)
    }),
  )
})
afterAll(async () => {
  await redis?.stop()
  rmSync(scratch, { recursive: true, force: true })
})

const find = (name: string): Packed => {
  const found = packed.find(({ manifest }) => manifest.name === name)
  if (found === undefined) throw new Error(`${name} was not packed`)
  return found
}

describe.each(names)('the tarball of %s', (name) => {
  it('holds the build, the licence and nothing else', () => {
    const foreign = find(name).files.filter(
      (file) => !/^(dist\/(esm|cjs)\/.+|grafana\/.+\.(json|yaml)|LICENSE|README\.md|package\.json)$/.test(file),
    )
    expect(foreign).toEqual([])
  })

  it('has a manifest without workspace versions and without the way to sources', async () => {
    // Its scripts, which may name the private condition, run in this repository only.
    const { scripts: _, ...manifest } = JSON.parse(await mustRun('tar', ['-xOzf', find(name).tarball, 'package/package.json']))
    expect(JSON.stringify(manifest)).not.toMatch(/@weir\/source|src\/|workspace:|catalog:/)
  })
})

describe.each(flavours)('in an empty project ($name)', (flavour) => {
  const directory = projectOf(flavour)

  beforeAll(async () => {
    if (flavour.language === 'ts') await compile(directory)
  })

  it.each(names)('%s does its work', async (name) => {
    expect(await runProgram(directory, flavour, find(name), redis.url)).toBe(snippetOf(find(name)).prints)
  })

  it('resolves to the build even with the private condition', async () => {
    const script = `import { createRequire } from 'node:module'
      const require = createRequire(process.cwd() + '/x.js')
      console.log(${JSON.stringify(names)}.map((name) => require.resolve(name)).join('\\n'))`
    const paths = await mustRun(process.execPath, ['--conditions=@weir/source', '--input-type=module', '-e', script], { cwd: directory })
    for (const path of paths.trim().split('\n')) expect(path).toMatch(/[\\/]dist[\\/]cjs[\\/]index\.js$/)
  })
})
