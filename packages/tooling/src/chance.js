// Checks that tests do the same in each run: every seed comes from `seed.js`, and no test is retried.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { workspacePackages } from './workspace.js'

/** @import { Violation } from './boundaries.js' */

const CLOCKS = String.raw`\b(?:Date\.now|performance\.now|hrtime|process\.pid)\b`
const SEED_OF_RUN = 'the seed of a test comes from @weir/tooling/seed'

/** @type {{ pattern: RegExp, message: string, onlyTests?: true }[]} */
const RULES = [
  { pattern: /(?<!['"`])\bMath\.random\b/, message: `no Math.random: ${SEED_OF_RUN}`, onlyTests: true },
  { pattern: /\b(?:randomInt|randomBytes|randomUUID|getRandomValues)\b/, message: `nothing by chance: ${SEED_OF_RUN}`, onlyTests: true },
  { pattern: /\benv(?:\.|\[['"])\w*SEED\b/, message: SEED_OF_RUN, onlyTests: true },
  { pattern: new RegExp(String.raw`(?:seed|random\().*${CLOCKS}`, 'i'), message: `no seed from a clock or a process: ${SEED_OF_RUN}` },
  { pattern: /\bretry: ?\d/, message: 'no test is run again: one that fails beside others is wrong', onlyTests: true },
  {
    pattern: /\bnumRuns\b[^}]*\bseed\b|\bseed\b[^}]*\bnumRuns\b/,
    message: 'a property has no seed of its own: `pnpm explore` could not change it',
  },
]

/**
 * Finds the parts of a test's source that would act differently in the next run.
 *
 * @param {string} source
 * @param {boolean} [isTest] false for published support of tests
 * @returns {string[]}
 */
export function chanceIn(source, isTest = true) {
  return source
    .split('\n')
    .flatMap((line, i) =>
      RULES.filter(({ pattern, onlyTests }) => (isTest || onlyTests !== true) && pattern.test(line)).map(
        ({ message }) => `line ${i + 1}: ${message}`,
      ),
    )
}

/**
 * Finds chance in the tests of this repository and in the code that they share.
 *
 * @returns {Violation[]}
 */
export function chanceViolations() {
  return workspacePackages()
    .filter(({ manifest }) => manifest.name !== '@weir/tooling')
    .flatMap(({ directory, manifest }) =>
      testSources(directory, manifest.name === SHARED ? ['src', 'test'] : ['test']).flatMap((file) =>
        chanceIn(readFileSync(join(directory, file), 'utf8'), manifest.name !== SHARED || file.startsWith('test')).map((message) => ({
          file: join(directory, file),
          rule: 'chance',
          message,
        })),
      ),
    )
}

/** The package whose sources run in tests. */
const SHARED = '@weir/testing'

/**
 * @param {string} directory
 * @param {string[]} folders
 * @returns {string[]} paths within the directory
 */
function testSources(directory, folders) {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && folders.includes(entry.name))
    .flatMap(({ name }) => readdirSync(join(directory, name), { recursive: true, encoding: 'utf8' }).map((file) => join(name, file)))
    .filter((file) => /\.[jt]sx?$/.test(file) && !file.includes('node_modules'))
}
