import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { ROOT, workspacePackages } from './workspace.js'

/** @import { Failure } from './summary-reporter.js' */

/** Finds code that uses the seed of the run: properties of fast-check, the seed itself, and functions of `@weir/testing` that read it. */
const SEEDED = /\bfc\.(?:assert|check|sample)\(|from '@weir\/tooling\/seed'|\b(?:algorithmContract|trySpellings)\(/

/**
 * The test files that use a seed, directly or through support that they import, for each package that has any.
 *
 * @returns {{ directory: string, files: string[] }[]}
 */
export function propertyFiles() {
  const packages = workspacePackages()
  const shared = packages.find(({ manifest }) => manifest.name === '@weir/testing')?.directory ?? ''
  /** @type {Map<string, boolean>} */
  const known = new Map()
  /** @type {(file: string) => boolean} */
  const seeded = (file) => {
    const before = known.get(file)
    if (before !== undefined) return before
    // In a cycle of imports, each file is read once.
    known.set(file, false)
    const source = existsSync(file) ? readFileSync(file, 'utf8') : ''
    const support = [...source.matchAll(/from '(\.[^']+|@weir\/testing\/store-tests\/[^']+)'/g)]
      .map(([, path = '']) => (path.startsWith('.') ? join(dirname(file), path) : join(shared, 'test/store-tests', `${basename(path)}.ts`)))
      // Only tests and their support use a seed, not the code under test.
      .filter((path) => !path.includes('/src/'))
    const found = SEEDED.test(source) || support.some(seeded)
    known.set(file, found)
    return found
  }
  return packages
    .filter(({ directory }) => existsSync(join(directory, 'test')))
    .map(({ directory }) => ({
      directory,
      files: readdirSync(join(directory, 'test'), { recursive: true, encoding: 'utf8' })
        .map((file) => join('test', file))
        .filter((file) => file.endsWith('.test.ts') && seeded(join(directory, file)))
        .sort(),
    }))
    .filter(({ files }) => files.length > 0)
}

/** The number of lines of an error that are shown if it names no shrunk case. */
const LINES = 8

/**
 * Describes a failure: the test, the seed, the shrunk case, and the command that replays it.
 *
 * @param {Failure} failure
 * @param {string} directory of the package
 * @param {number} seed
 * @returns {string}
 */
export function finding({ file, text }, directory, seed) {
  const [heading = '', ...rest] = text.split('\n')
  const error = rest.join('\n')
  const title = heading.slice(`${file} > `.length)
  const shrunk = /Counterexample: [\s\S]*?(?=\nShrunk |$)/.exec(error)?.[0]
  const reason = /^Caused by: .*/m.exec(error)?.[0]
  const pattern = title.replaceAll(' > ', ' ').replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
  const only = file === undefined || title === '' ? '' : ` -t '${pattern.replaceAll("'", `'\\''`)}'`
  return [
    `FAILED ${relative(ROOT, join(directory, file ?? ''))}`,
    `  test    ${title === '' ? heading : title}`,
    `  seed    ${seed}`,
    ...(shrunk === undefined ? rest.slice(0, LINES) : [shrunk, ...(reason === undefined ? [] : [reason])]).map((line) => `  ${line}`),
    `  replay  cd ${relative(ROOT, directory)} && FC_SEED=${seed} npx -y pnpm vitest run ${file ?? ''}${only}`,
  ].join('\n')
}
