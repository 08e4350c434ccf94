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
// Without these the tests of their stores are skipped.
for (const skipped of [await ensureEtcdServer(), await ensurePostgres()]) if (skipped !== undefined) console.warn(skipped)

/** The scripts of a package that are tests. */
const SCRIPTS = ['test', 'test:playground']
/** Scripts with tests that don't depend on time: they run beside the others, with the processor time that is left. */
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

// The Node.js version is part of the cache key: results of one version say nothing about another.
const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', WEIR_NODE: process.version }
// Suites in real time wait for half of their time: two at least.
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
    // Turbo says that all is well when it is told to end in the middle.
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
  // Again, since the suites' own words are far above by now.
  for (const { text } of failures) console.log(`\nFAILED ${name} ${text}\n`)
}
// A suite that ended without a summary (a crash, a missing program) is a failure, whatever the others counted.
if (status !== 0 && total.failed === 0) total.failed = 1
console.log(`\n${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)
