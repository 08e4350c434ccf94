// Runs the test suites of all packages and closes with one line: `N passed, N failed`.
// Arguments go to turbo, e.g. `pnpm test --filter=@weir/core --force`.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { ensureEtcdServer } from '../src/etcd-server.js'
import { ensurePostgres } from '../src/postgres-server.js'
import { ensureRedisServer } from '../src/redis-server.js'
import { run } from '../src/run.js'
import { summaryFile } from '../src/summary-reporter.js'
import { ROOT, workspacePackages } from '../src/workspace.js'

/** @import { Summary } from '../src/summary-reporter.js' */

const missing = await ensureRedisServer()
if (missing !== undefined) {
  console.error(missing)
  process.exit(1)
}
// If one of these servers is missing, the tests of its store are skipped.
for (const skipped of [await ensureEtcdServer(), await ensurePostgres()]) if (skipped !== undefined) console.warn(skipped)

/** The scripts of a package that are tests. */
const SCRIPTS = ['test', 'test:playground']
/** Scripts with tests that don't depend on time. They run beside the others, with the remaining processor time. */
const BESIDE = ['test:packed', 'test:simulated']
const suites = [...SCRIPTS, ...BESIDE].flatMap((script) =>
  workspacePackages()
    .filter(({ manifest }) => manifest.scripts?.[script] !== undefined)
    .map(({ directory, manifest }) => ({
      name: script === 'test' ? manifest.name : `${manifest.name} ${script}`,
      file: join(directory, summaryFile(script)),
    })),
)
for (const { file } of suites) rmSync(file, { force: true })

// The Node.js version is part of the cache key, because results of one version don't apply to another.
const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', WEIR_NODE: process.version }
// At least two suites run at a time, because suites in real time wait for half of their time.
const concurrency = Math.max(2, Math.floor(availableParallelism() / 2))
const filtered = process.argv.slice(2).some((argument) => /^(-F|--filter|--affected)/.test(argument))
const runs = [SCRIPTS, ...BESIDE.map((script) => [script])].map((scripts) =>
  run('turbo', ['run', ...scripts, '--continue', `--concurrency=${concurrency}`, ...process.argv.slice(2)], {
    cwd: ROOT,
    env,
    inherit: true,
  }),
)
const status = Math.max(...(await Promise.all(runs)).map((outcome) => outcome.status))

const total = { passed: 0, failed: 0 }
console.log()
for (const { name, file } of suites) {
  if (!existsSync(file)) {
    // Turbo exits with 0 if it is interrupted, so a missing summary counts as a failure.
    if (filtered) continue
    total.failed++
    console.log(`${name}: ended without a result`)
    continue
  }
  /** @type {Summary} */
  const { passed, failed, skipped, failures } = JSON.parse(readFileSync(file, 'utf8'))
  total.passed += passed
  total.failed += failed
  console.log(`${name}: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  // Printed again, because the output of the suites is far above.
  for (const { text } of failures) console.log(`\nFAILED ${name} ${text}\n`)
}
// A suite that ended without a summary (a crash, a missing program) is a failure, even if the others passed.
if (status !== 0 && total.failed === 0) total.failed = 1
console.log(`\n${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)
