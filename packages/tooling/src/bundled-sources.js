import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ROOT, SOURCE_CONDITION, sourceEntries } from './workspace.js'

/** The packages that most tests use. They are bundled together, because one imports the other. */
const BUNDLED = ['@weir/core', '@weir/testing']

/**
 * Bundles entries into one folder, with their common code in files of its own.
 *
 * @param {readonly string[]} files the sources of the entries
 * @returns {Promise<ReadonlyMap<string, string>>} the bundles by source
 */
async function bundlesOf(files) {
  const { build } = await import('esbuild')
  // Vitest leaves modules in such a folder to Node.js.
  const room = resolve('node_modules')
  mkdirSync(room, { recursive: true })
  const outdir = mkdtempSync(join(room, '.weir-sources-'))
  process.once('exit', () => rmSync(outdir, { recursive: true, force: true }))
  await build({
    entryPoints: files.map((file, index) => ({ in: file, out: String(index) })),
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: [SOURCE_CONDITION],
    logLevel: 'error',
  })
  return new Map(files.map((file, index) => [file, join(outdir, `${index}.mjs`)]))
}

/** Shared by all projects of a run. @type {Promise<ReadonlyMap<string, string>> | undefined} */
let bundles

/**
 * Makes tests of other packages load the core and the simulator as bundles, made from the current sources at the start of a run. Vitest
 * looks up an import each time it is used, which doubles the processor time of hot code in hundreds of modules. In watch mode the sources
 * stay as they are, so that their changes arrive.
 *
 * @returns {import('vitest/config').Plugin}
 */
export function bundledSources() {
  const { name: own } = JSON.parse(readFileSync(resolve('package.json'), 'utf8'))
  // The copy of a package in another folder depends on copies.
  const unbundled = own === '@weir/core' || !resolve().startsWith(ROOT)
  const packages = unbundled ? [] : BUNDLED.filter((name) => name !== own)
  const entries = new Map([...sourceEntries()].filter(([name]) => packages.some((one) => name === one || name.startsWith(`${one}/`))))
  const files = [...entries.values()]
  let watches = false
  return {
    name: 'weir-bundled-sources',
    enforce: 'pre',
    configureVitest({ vitest }) {
      watches = vitest.config.watch
    },
    async resolveId(source, importer) {
      const file = entries.get(source) ?? (importer === undefined ? source : join(dirname(importer), source))
      if (watches || !files.includes(file)) return undefined
      bundles ??= bundlesOf(files)
      return (await bundles).get(file)
    },
  }
}
