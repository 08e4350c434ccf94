import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ROOT } from './workspace.js'

/** The lint rules that keep the rooms of this repository apart. `plugin` is the rule about randomness in core. */
const BOUNDARY_RULES = new Set([
  'lint/style/noRestrictedImports',
  'lint/style/noRestrictedGlobals',
  'lint/suspicious/noImportCycles',
  'lint/correctness/noUndeclaredDependencies',
  'plugin',
])

/** @typedef {{ rule: string, file: string, message: string }} Violation */

/**
 * Finds broken import rules in the tree at `directory`, by the Biome configurations of that tree.
 *
 * @param {string} directory
 * @returns {Violation[]}
 * @throws if Biome can't run or can't read its configuration.
 */
export function boundaryViolations(directory) {
  const biome = join(ROOT, 'node_modules', '.bin', 'biome')
  const args = ['lint', '--reporter=json', '--max-diagnostics=none', '--diagnostic-level=info', '.']
  const { stdout, stderr, error } = spawnSync(biome, args, { cwd: directory, encoding: 'utf8', maxBuffer: 1 << 28 })
  if (error) throw error
  const start = stdout.indexOf('{')
  if (start < 0) throw new Error(`Biome gave no report:\n${stderr}`)
  /** @type {{ diagnostics: { category: string, message: unknown, location: { path: string } | null }[], summary: { errors: number } }} */
  const report = JSON.parse(stdout.slice(start))
  const broken = report.diagnostics.find(({ category }) => !category.startsWith('lint/') && category !== 'plugin')
  if (broken) {
    const where = broken.location?.path ?? 'the tree'
    throw new Error(`Biome could not check the boundaries in ${where}: ${broken.category}: ${JSON.stringify(broken.message)}`)
  }
  return report.diagnostics
    .filter(({ category }) => BOUNDARY_RULES.has(category))
    .map(({ category, message, location }) => ({ rule: category, file: location?.path ?? '', message: String(message) }))
}
