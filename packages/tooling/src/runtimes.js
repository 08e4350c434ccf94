import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** The runtimes beside Node.js in which Weir is tested. Their npm packages contain them. */
export const RUNTIMES = /** @type {const} */ (['bun', 'deno'])

/** @typedef {(typeof RUNTIMES)[number]} Runtime */

/**
 * @param {string} name
 * @returns {name is Runtime}
 */
export function isRuntime(name) {
  return RUNTIMES.some((runtime) => runtime === name)
}

/** The path of the program in the npm package of a platform, and the arguments before the path of a script. */
const PROGRAMS = {
  bun: { files: ['bin/bun', 'bin/bun.exe'], args: [] },
  deno: { files: ['deno', 'deno.exe'], args: ['run', '--allow-all'] },
}

/**
 * The command that runs a script in a runtime. Its program is in an optional dependency for this platform. The program that the package
 * itself has as a command works only after an install script, which the workspace doesn't allow.
 *
 * @param {Runtime} runtime
 * @returns {{ file: string, args: readonly string[] }}
 * @throws if its package has no program for this platform.
 */
export function runtimeCommand(runtime) {
  const { files, args } = PROGRAMS[runtime]
  const require = createRequire(createRequire(import.meta.url).resolve(`${runtime}/package.json`))
  /** @type {{ optionalDependencies: Record<string, string> }} */
  const { optionalDependencies } = require('./package.json')
  for (const platform of Object.keys(optionalDependencies)) {
    try {
      const folder = dirname(require.resolve(`${platform}/package.json`))
      const file = files.map((name) => join(folder, name)).find((path) => existsSync(path))
      if (file !== undefined) return { file, args }
    } catch {
      // The package of another platform is not installed.
    }
  }
  throw new Error(`${runtime} has no program for ${process.platform} on ${process.arch}.`)
}
