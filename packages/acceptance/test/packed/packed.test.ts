import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, posix } from 'node:path'
import { errorPages } from '@weir/tooling/error-pages'
import { EtcdServer, NO_ETCD } from '@weir/tooling/etcd-servers'
import type { Packed } from '@weir/tooling/pack'
import { findPostgres, PostgresServer } from '@weir/tooling/postgres-servers'
import { RedisServer } from '@weir/tooling/redis-servers'
import { mustRun, run } from '@weir/tooling/run'
import { RUNTIMES } from '@weir/tooling/runtimes'
import { publicPackages, ROOT } from '@weir/tooling/workspace'
import { build, type Plugin } from 'esbuild'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { type Counts, runOn } from './on-runtimes.ts'
import { compile, entriesProgram, type Flavour, flavours, install, runProgram, snippetOf, writeProject } from './project.ts'

const names = publicPackages().map(({ manifest }) => manifest.name)
/** The first entry of each package. */
const entries = publicPackages().map(({ manifest: { name, exports } }) => posix.join(name, Object.keys(exports ?? {})[0] as string))
const scratch = mkdtempSync(join(tmpdir(), 'weir-packed-'))
const packed = inject('packed')
/** The files that npm would pack. */
let packedByNpm: readonly { readonly name: string; readonly files: readonly { readonly path: string }[] }[]
let redis: RedisServer
/** Undefined if etcd is not installed. Then its program counts without a store. */
let etcd: EtcdServer | undefined
/** Undefined if PostgreSQL is not installed, with the same effect. */
let postgres: PostgresServer | undefined

const projectOf = (flavour: Flavour): string => join(scratch, `${flavour.module}-${flavour.language}`)

beforeAll(async () => {
  redis = await RedisServer.start()
  if (NO_ETCD === undefined) etcd = await EtcdServer.start()
  if (findPostgres() !== undefined) postgres = await PostgresServer.start()
  // Copies without dependencies, because npm would first read all of them for half a minute.
  const folders = packed.map(({ directory }) => {
    const copy = join(scratch, 'folders', basename(directory))
    cpSync(directory, copy, { recursive: true, filter: (path) => basename(path) !== 'node_modules' })
    return copy
  })
  packedByNpm = JSON.parse(await mustRun('npm', ['pack', '--json', '--dry-run', '--ignore-scripts', ...folders], { cwd: ROOT }))
  await Promise.all(
    flavours.map(async (flavour) => {
      await writeProject(projectOf(flavour), flavour, packed)
      await install(projectOf(flavour), flavour)
    }),
  )
})
afterAll(async () => {
  await redis?.stop()
  await etcd?.stop()
  await postgres?.stop()
  rmSync(scratch, { recursive: true, force: true })
})

/** The files of a package that an import of this one loads at once. A build writes each import in a line of its own. */
function startedBy(file: string, seen: Set<string> = new Set()): Set<string> {
  if (seen.has(file)) return seen
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  for (const [, esm, cjs] of text.matchAll(
    /^(?:import|export) (?:[^'"]* from )?"(\.[^"]+)";$|^(?:const \w+ = )?require\("(\.[^"]+)"\);$/gm,
  ))
    startedBy(join(file, '..', (esm ?? cjs) as string), seen)
  return seen
}

const find = (name: string): Packed => {
  const found = packed.find(({ manifest }) => manifest.name === name)
  if (found === undefined) throw new Error(`${name} was not packed`)
  return found
}

describe.each(names)('the tarball of %s', (name) => {
  it('holds the build, its sources, the licence, a README and nothing else', async () => {
    const foreign = find(name).files.filter(
      (file) =>
        !/^(dist\/(esm|cjs)\/.+|src\/.+\.ts|docs\/.+\.md|grafana\/.+\.(json|yaml)|rules\.schema\.json|LICENSE|README\.md|package\.json)$/.test(
          file,
        ),
    )
    expect(foreign).toEqual([])
    expect(find(name).files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']))
    expect(await mustRun('tar', ['-xOzf', find(name).tarball, 'package/LICENSE'])).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'))
  })

  // Finding and opening a file takes Node.js longer than compiling it.
  it.each(['esm', 'cjs'])('has few files to import at the start (%s)', (format) => {
    const { directory, files } = find(name)
    const modules = files.filter((file) => file.startsWith(`dist/${format}/`) && file.endsWith('.js'))
    expect(modules.length).toBeGreaterThan(0)
    for (const module of modules) expect(startedBy(join(directory, module)).size, module).toBeLessThanOrEqual(5)
    // The others are loaded when they are needed, one at a time.
    expect(modules.length).toBeLessThanOrEqual(20)
  })

  it('holds the same files when npm packs it', () => {
    const files = packedByNpm.find((report) => report.name === name)?.files.map(({ path }) => path)
    expect(files?.sort()).toEqual([...find(name).files].sort())
  })

  it('is published by pnpm only, which writes the manifest that users get', async () => {
    const { manifest } = find(name)
    expect(manifest.scripts?.['prepublishOnly']).toBe('weir-only-pnpm')
    const command = join(find(name).directory, 'node_modules', '.bin', 'weir-only-pnpm')
    const by = (agent: string) => run(command, [], { env: { ...process.env, npm_config_user_agent: agent } })
    expect((await by('pnpm/12.0.0 npm/? node/v20.20.0 linux x64')).status).toBe(0)
    expect(await by('npm/11.0.0 node/v20.20.0 linux x64')).toMatchObject({ status: 1, output: expect.stringContaining('pnpm publish') })
  })

  it('has a manifest without workspace versions and without the way to sources', async () => {
    // Scripts may name the private condition, because they run only in this repository.
    const { scripts: _, ...manifest } = JSON.parse(await mustRun('tar', ['-xOzf', find(name).tarball, 'package/package.json']))
    expect(JSON.stringify(manifest)).not.toMatch(/@weir\/source|src\/|workspace:|catalog:/)
  })
})

describe('the pages that errors and warnings name', () => {
  // The tests of the packages check which pages these are, and that each code has a section.
  it('are in the tarball of the package that they name', async () => {
    const { files } = find('@weir/core')
    expect(files).toEqual(expect.arrayContaining(['docs/reference/errors.md', 'docs/guides/algorithms.md', 'docs/guides/small-limits.md']))
    const all = readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8')
    expect(files).toEqual(expect.arrayContaining(errorPages(all).map(({ path }) => `docs/${path}`)))
  })

  it('link only to pages that are in the tarball too', async () => {
    const { files, tarball } = find('@weir/core')
    const folder = mkdtempSync(join(scratch, 'docs-'))
    await mustRun('tar', ['-xzf', tarball, '-C', folder])
    const pages = files.filter((file) => file.startsWith('docs/'))
    expect(pages.length).toBeGreaterThan(60)
    const links = pages.flatMap((page) => {
      const text = readFileSync(join(folder, 'package', page), 'utf8').replace(/^(```+)[^\n]*\n[\s\S]*?^\1$/gm, '')
      return [...text.matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)/g)].map(([, url = '']) => posix.join(posix.dirname(page), url))
    })
    expect(links.length).toBeGreaterThan(200)
    expect(links.filter((link) => !files.includes(link))).toEqual([])
  })
})

/** Leaves out the parts that an application loads later. */
const WITHOUT_LATER: Plugin = {
  name: 'parts that are loaded later',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^\./ }, ({ kind, path }) => (kind === 'dynamic-import' ? { path, external: true } : undefined)),
}

describe('the bundle of an application', () => {
  const sizeOf = async (resolveDir: string, conditions: string[], whole: boolean) => {
    const { outputFiles } = await build({
      stdin: { contents: "export { throttle } from '@weir/express'", resolveDir },
      bundle: true,
      minify: true,
      write: false,
      platform: 'node',
      format: 'esm',
      conditions,
      plugins: whole ? [] : [WITHOUT_LATER],
    })
    return outputFiles[0]?.contents.length ?? 0
  }

  it.each([
    ['at its start', false],
    ['in one file', true],
  ])('has no more than what it imports, although the modules are in a few files: %s', async (_, whole) => {
    const fromSources = await sizeOf(find('@weir/express').directory, ['@weir/source'], whole)
    expect(fromSources).toBeGreaterThan(100_000)
    expect(await sizeOf(projectOf(flavours[0] as Flavour), [], whole)).toBeLessThan(1.02 * fromSources)
  })
})

describe.each(flavours)('in an empty project ($name)', (flavour) => {
  const directory = projectOf(flavour)

  beforeAll(async () => {
    if (flavour.language === 'ts') await compile(directory)
  })

  it.each(names)('%s does its work', async (name) => {
    const servers = { REDIS_URL: redis.url, ...(etcd && { ETCD_ENDPOINT: etcd.url }), ...(postgres && { POSTGRES_URL: postgres.url }) }
    expect(await runProgram(directory, flavour, find(name), servers)).toBe(snippetOf(find(name)).prints)
  })

  it('has the command weir', async () => {
    const said = await mustRun(join(directory, 'node_modules', '.bin', 'weir'), ['--help'], { cwd: directory })
    expect(said).toContain('Usage: weir')
  })

  describe('entries', () => {
    const extension = flavour.module === 'esm' ? 'mjs' : 'cjs'
    const program = join(directory, `entries.${extension}`)
    const print = async (...options: string[]) => JSON.parse(await mustRun(process.execPath, [...options, program], { cwd: directory }))

    beforeAll(() => writeFileSync(program, entriesProgram(flavour.module)))

    it('share classes and state', async () => {
      const { errors } = await print()
      expect(errors).toMatchObject([
        { code: 'WEIR_DUPLICATE_POLICY', ours: true },
        { code: 'WEIR_INVALID_OPTION', ours: true },
        { code: 'WEIR_INVALID_OPTION', ours: true },
        { code: 'WEIR_DUPLICATE_POLICY', ours: true },
      ])
    })

    it.each([[[]], [['--enable-source-maps']]])('report the lines of the application (node %j)', async (options) => {
      const { lines, errors } = await print(...options)
      for (const line of lines) expect(errors[0].message).toContain(`entries.${extension}:${line}:`)
      expect(errors[3].message).toContain('the other at an unknown place')
    })

    it('have stack traces with lines of the sources, which are in the package', async () => {
      const { errors } = await print('--enable-source-maps')
      for (const { stack } of errors) {
        let called = 'WeirError'
        const frames = [...stack.matchAll(/^ +at (?:new )?(?:\w+\.)?#?(\w+) \((.*@weir[\\/].*):(\d+):\d+\)$/gm)]
        expect(frames.length).toBeGreaterThan(1)
        for (const [, name, file, line] of frames) {
          expect(readFileSync(file, 'utf8').split('\n')[line - 1]).toContain(called)
          called = name
        }
      }
    })
  })

  it('resolves to the build even with the private condition', async () => {
    const script = `import { createRequire } from 'node:module'
      const require = createRequire(process.cwd() + '/x.js')
      console.log(${JSON.stringify(entries)}.map((entry) => require.resolve(entry)).join('\\n'))`
    const paths = await mustRun(process.execPath, ['--conditions=@weir/source', '--input-type=module', '-e', script], { cwd: directory })
    for (const path of paths.trim().split('\n')) expect(path).toMatch(/[\\/]dist[\\/]cjs[\\/][\w-]+\.js$/)
  })
})

describe.each(RUNTIMES)('on %s', (runtime) => {
  const directory = projectOf(flavours[0] as Flavour)

  it('two processes share their limits through Redis, in all servers, and end without a warning', async () => {
    const ended = await Promise.all(
      ['first', 'second'].map((role) => runOn(runtime, directory, 'programs/on-runtimes.ts', [redis.url, `on-${runtime}`, role])),
    )
    const counts = ended.map(({ status, output }): Counts => {
      // A warning would be no JSON.
      if (status !== 0 || !output.startsWith('{')) throw new Error(output)
      return JSON.parse(output)
    })
    expect(counts.map(({ background }) => background)).toEqual([12, 8])
    for (const [index, name] of ['express', 'fastify', 'hono', 'web'].entries()) {
      const servers = counts.map(({ servers }) => servers[index])
      expect(servers.reduce((sum, server) => sum + (server?.allowed ?? Number.NaN), 0)).toBe(20)
      for (const server of servers)
        expect(server).toMatchObject({
          rejected: 25 - (server?.allowed ?? Number.NaN),
          headers: {
            'content-type': expect.stringContaining('application/problem+json'),
            'ratelimit-policy': `"${name}";q=20;w=82800`,
            ratelimit: expect.stringMatching(new RegExp(`^"${name}";r=0;t=\\d+$`)),
            'retry-after': expect.stringMatching(/^[1-9]\d*$/),
          },
        })
    }
    // The platform reports the client's address to @weir/web.
    for (const { servers } of counts) expect(servers[3]).toMatchObject({ used: 20 })
  })

  it('workers of node:cluster share a limit through their primary, and end without a warning', async () => {
    const { status, output } = await runOn(runtime, directory, 'programs/cluster-on-runtimes.ts')
    expect(output).toMatch(/^\d+\n\d+\n$/)
    expect(output.split('\n').reduce((sum, line) => sum + Number(line), 0)).toBe(20)
    expect(status).toBe(0)
  })
})
