// Builds the playground: a static page that works from any path and sends no requests to other servers.
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = (/** @type {string} */ file) => fileURLToPath(new URL(file, import.meta.url))

/** The modules that replace modules of Node.js in a browser. */
const MODULES = {
  'node:crypto': here('browser/crypto.ts'),
  'node:process': here('browser/process.ts'),
  'node:diagnostics_channel': here('browser/system.ts'),
  'node:os': here('browser/system.ts'),
  'node:worker_threads': here('browser/system.ts'),
  'node:util/types': here('browser/system.ts'),
}

/** @type {import('esbuild').BuildOptions} */
const COMMON = {
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022', 'safari16'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  // Bundles the sources of core, not an earlier build.
  conditions: ['@weir/source'],
}

/**
 * @param {string} [outdir] folder for the page. Its previous content is removed
 * @throws if the worker would need a module that a browser does not have
 */
export async function buildPlayground(outdir = here('../../dist/playground')) {
  rmSync(outdir, { recursive: true, force: true })
  mkdirSync(outdir, { recursive: true })
  const [{ metafile }] = await Promise.all([
    build({
      ...COMMON,
      entryPoints: [here('browser/worker.ts')],
      outdir,
      alias: MODULES,
      // Imports of the contract suites in the same package, which are left out.
      external: ['node:*'],
      metafile: true,
      inject: [here('browser/timers.ts'), here('browser/buffer.ts'), here('browser/process.ts')],
    }),
    build({
      ...COMMON,
      entryPoints: { page: here('page/main.tsx'), style: here('page/style.css') },
      outdir,
      banner: {
        js: '/* Contains Preact and uPlot, both under the MIT licence: https://github.com/preactjs/preact, https://github.com/leeoniya/uPlot */',
      },
    }),
  ])
  const missing = Object.values(metafile.outputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external).map(({ path }) => path),
  )
  if (missing.length > 0) throw new Error(`The worker needs modules that a browser does not have: ${missing.join(', ')}`)
  cpSync(here('page/index.html'), `${outdir}/index.html`)
}

/** For vitest, which calls the default export of a global set-up. */
export default function setup() {
  return buildPlayground()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPlayground()
