import { mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { SOURCE_CONDITION } from './workspace.js'

/** The `require` that CommonJS modules need within an ECMAScript module. */
const REQUIRE = `import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)`

/**
 * Bundles each of some programs of a package into one file, for tests that start them often. This needs far less processor time than
 * compiling and loading their sources again for each process.
 *
 * @param {string} directory of the package
 * @param {readonly string[]} programs their sources, each with a different name
 * @param {readonly string[]} [external] dependencies of the package that stay as they are
 * @param {boolean} [apart] whether code that they load later stays in files of its own, as in the packages
 * @returns {Promise<string>} the folder that they are in, side by side, to be removed by the caller
 */
export async function bundlePrograms(directory, programs, external = [], apart = false) {
  // A folder within the package, so that Node.js finds the package's dependencies.
  const room = join(directory, 'node_modules')
  mkdirSync(room, { recursive: true })
  const outdir = mkdtempSync(join(room, '.weir-programs-'))
  await build({
    absWorkingDir: directory,
    entryPoints: [...programs],
    entryNames: '[name]',
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: apart,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: [SOURCE_CONDITION],
    external: [...external],
    banner: { js: REQUIRE },
    logLevel: 'error',
  })
  return outdir
}
