// Runs the test suites of all packages and closes with one line: `N passed, N failed`.
// Arguments go to turbo, e.g. `pnpm test --filter=@weir/core --force`.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureRedisServer } from '../src/redis-server.js'
import { run } from '../src/run.js'
import { SUMMARY_FILE } from '../src/summary-reporter.js'
import { ROOT, workspacePackages } from '../src/workspace.js'

const missing = await ensureRedisServer()
if (missing !== undefined) {
  console.error(missing)
  process.exit(1)
}

const suites = workspacePackages().filter(({ manifest }) => manifest.scripts?.['test'] !== undefined)
for (const { directory } of suites) rmSync(join(directory, SUMMARY_FILE), { force: true })

// The Node.js version is part of the cache key: results of one version say nothing about another.
const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', WEIR_NODE: process.version }
const args = ['run', 'test', '--continue', '--concurrency=50%', ...process.argv.slice(2)]
const { status } = await run('turbo', args, { cwd: ROOT, env, inherit: true })

const total = { passed: 0, failed: 0 }
const filtered = process.argv.slice(2).some((argument) => /^(-F|--filter|--affected)/.test(argument))
console.log()
for (const { directory, manifest } of suites) {
  const file = join(directory, SUMMARY_FILE)
  if (!existsSync(file)) {
    // Turbo says that all is well when it is told to end in the middle.
    if (filtered) continue
    total.failed++
    console.log(`${manifest.name}: ended without a result`)
    continue
  }
  const { passed, failed, skipped } = JSON.parse(readFileSync(file, 'utf8'))
  total.passed += passed
  total.failed += failed
  console.log(`${manifest.name}: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
}
// A suite that ended without a summary (a crash, a missing program) is a failure, whatever the others counted.
if (status !== 0 && total.failed === 0) total.failed = 1
console.log(`\n${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)
