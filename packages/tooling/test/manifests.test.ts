import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { build } from 'esbuild'
import { describe, expect, it, test } from 'vitest'
import pnpmfile from '../src/pnpmfile.cjs'
import { publicPackages, SOURCE_CONDITION, workspacePackages } from '../src/workspace.js'

/** Modules that every application of NestJS imports itself. */
const FRAMEWORK = /^@nestjs\/|^rxjs$/

/** Modules of a package that load one of its peers when they are imported, as `file peer`. */
function loadingPeers(directory: string, peers: readonly string[]): string[] {
  const files = readdirSync(join(directory, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  return files.flatMap((file) => {
    const text = readFileSync(join(directory, 'src', file), 'utf8')
    const froms = [...text.matchAll(/^(?:import|export) (?!type\b)[^;]*? from '([^']+)'$/gm)].map(([, from]) => from as string)
    return froms.filter((from) => peers.includes(from)).map((peer) => `${basename(file, '.ts')} ${peer}`)
  })
}

describe.each(publicPackages().map((one) => [one.manifest.name, one] as const))('%s', (_name, { directory, manifest }) => {
  it('loads peers in modules whose names say how to install them, which Node.js prints if they are missing', () => {
    const peers = Object.keys(manifest.peerDependencies ?? {}).filter((peer) => !FRAMEWORK.test(peer))
    for (const found of loadingPeers(directory, peers)) {
      const [file, peer = ''] = found.split(' ')
      expect(file).toBe(`npm-install-${peer.replace('@', '').replace('/', '-')}`)
    }
  })

  it('ends each peer range before the next major version, which nobody has tried', () => {
    const ranges = Object.entries(manifest.peerDependencies ?? {})
    const open = ranges.filter(([, range]) => !range.split('||').every((part) => /^\s*([\^~]\d|\d|.*<)/.test(part)))
    expect(open).toEqual([])
  })
})

test('a package imports other packages by their names', () => {
  const packages = workspacePackages().filter(({ directory }) => basename(dirname(directory)) === 'packages')
  const others = new RegExp(
    `^(?:import|export|}).* from '(?:\\.\\./)+(?:${packages.map(({ directory }) => basename(directory)).join('|')})/`,
    'm',
  )
  const isCode = (file: string) => /\.[jt]s$/.test(file) && !/(?:^|\/)(?:node_modules|dist)\//.test(file)
  const deep = packages.flatMap(({ directory }) =>
    ['src', 'test', 'bin'].flatMap((folder) => {
      const root = join(directory, folder)
      if (!existsSync(root)) return []
      const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(isCode)
      return files.map((file) => join(root, file)).filter((file) => others.test(readFileSync(file, 'utf8')))
    }),
  )
  expect(deep).toEqual([])
})

describe('a packed package', () => {
  const workspace = {
    name: '@weir/sample',
    files: ['dist', 'schema.json'],
    exports: {
      '.': { '@weir/source': './src/index.ts', import: { types: './dist/esm/index.d.ts' }, require: { types: './dist/cjs/index.d.ts' } },
      './part': { '@weir/source': './src/part.ts', require: { types: './dist/cjs/part.d.ts', default: './dist/cjs/part.js' } },
      './page.css': './page/page.css',
      './schema.json': './schema.json',
      './package.json': './package.json',
    },
  }

  it('exports its published files, and has types of subpaths for old resolution', () => {
    expect(pnpmfile.hooks.beforePacking(workspace)).toEqual({
      ...workspace,
      exports: {
        '.': { import: { types: './dist/esm/index.d.ts' }, require: { types: './dist/cjs/index.d.ts' } },
        './part': { require: { types: './dist/cjs/part.d.ts', default: './dist/cjs/part.js' } },
        './schema.json': './schema.json',
        './package.json': './package.json',
      },
      typesVersions: { '*': { part: ['./dist/cjs/part.d.ts'] } },
    })
  })

  it('without subpaths has no types of them', () => {
    const exports = { '.': workspace.exports['.'] }
    expect(pnpmfile.hooks.beforePacking({ ...workspace, exports })).not.toHaveProperty('typesVersions')
  })
})

describe('a bundler without a plugin for CommonJS', () => {
  // `@weir/core/http` and `/rules` are not in the list, because they need path-to-regexp, which exists only as CommonJS.
  it.each([
    '@weir/core',
    '@weir/core/sync',
    '@weir/core/memory',
    '@weir/core/inspect',
    '@weir/core/ipc',
    '@weir/core/adapter',
    '@weir/core/leases',
    '@weir/core/hub',
  ])('can bundle %s', async (entry) => {
    const core = publicPackages().find(({ manifest }) => manifest.name === '@weir/core')
    const { metafile } = await build({
      stdin: { contents: `export * from '${entry}'`, resolveDir: core?.directory ?? '' },
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      conditions: [SOURCE_CONDITION],
    })
    const inputs = Object.entries(metafile.inputs)
    expect(inputs.length).toBeGreaterThan(1)
    expect(inputs.filter(([, { format }]) => format === 'cjs')).toEqual([])
  })
})
