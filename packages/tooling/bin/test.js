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

/** @import { Failure, Summary } from '../src/summary-reporter.js' */

/** Suites whose failed files run once more. If more of them failed, it was not the machine. */
const MOST_REPEATED = 4
const REPEATED = 'test:repeated'

const missing = await ensureRedisServer()
if (missing !== undefined) {
  console.error(missing)
  process.exit(1)
}
// Without these the tests of their stores are skipped.
for (const skipped of [await ensureEtcdServer(), await ensurePostgres()]) if (skipped !== undefined) console.warn(skipped)

/** Of a package's scripts. What does not depend on time runs beside the others, with what they leave of the processor. */
const SCRIPTS = ['test', 'test:simulated']
/** Packages whose `test` does not depend on time either: nearly all of it is installing and compiling. */
const BESIDE = ['@weir/packed']
const suites = SCRIPTS.flatMap((script) =>
  workspacePackages()
    .filter(({ manifest }) => manifest.scripts?.[script] !== undefined)
    .map(({ directory, manifest }) => ({
      name: script === 'test' ? manifest.name : `${manifest.name} ${script}`,
      directory,
      script,
      file: join(directory, summaryFile(script)),
    })),
)
for (const { file } of suites) rmSync(file, { force: true })

// The Node.js version is part of the cache key: results of one version say nothing about another.
const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1', WEIR_NODE: process.version }
// Suites in real time wait for half of their time: two at least.
const concurrency = Math.max(2, Math.floor(availableParallelism() / 2))
const filtered = process.argv.slice(2).some((argument) => /^(-F|--filter|--affected)/.test(argument))
/** @type {string[][]} */
const tasks = filtered
  ? SCRIPTS.map((script) => [script])
  : [
      ['test', ...BESIDE.map((name) => `--filter=!${name}`)],
      ['test', ...BESIDE.map((name) => `--filter=${name}`)],
      ...SCRIPTS.slice(1).map((script) => [script]),
    ]
const runs = tasks.map((task) =>
  run('turbo', ['run', ...task, '--continue', `--concurrency=${concurrency}`, ...process.argv.slice(2)], { cwd: ROOT, env, inherit: true }),
)
const status = Math.max(...(await Promise.all(runs)).map((outcome) => outcome.status))

/** @type {(file: string) => Summary} */
const read = (file) => JSON.parse(readFileSync(file, 'utf8'))

const total = { passed: 0, failed: 0 }
/** @type {{ name: string, directory: string, failures: Failure[] }[]} */
const unsure = []
console.log()
for (const { name, directory, script, file } of suites) {
  if (!existsSync(file)) {
    // Turbo says that all is well when it is told to end in the middle.
    if (filtered) continue
    total.failed++
    console.log(`${name}: ended without a result`)
    continue
  }
  const { passed, failed, skipped, failures } = read(file)
  total.passed += passed
  total.failed += failed
  console.log(`${name}: ${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
  // Again, since the suites' own words are far above by now.
  for (const { text } of failures) console.log(`\nFAILED ${name} ${text}\n`)
  if (script === 'test' && failures.length > 0 && failures.every(mayBeTheMachine)) unsure.push({ name, directory, failures })
}
// A suite that ended without a summary (a crash, a missing program) is a failure, whatever the others counted.
if (status !== 0 && total.failed === 0) total.failed = 1

for (const { name, directory, failures } of unsure.length <= MOST_REPEATED ? unsure : []) {
  const files = [...new Set(failures.map((failure) => String(failure.file)))]
  console.log(`\n${name}: once more, with nothing beside it: ${files.join(' ')}`)
  const summary = join(directory, summaryFile(REPEATED))
  rmSync(summary, { force: true })
  // As the reporter learns which summary it is to write.
  await run('pnpm', ['exec', 'vitest', 'run', ...files], { cwd: directory, env: { ...env, npm_lifecycle_event: REPEATED }, inherit: true })
  if (!existsSync(summary) || read(summary).failed > 0) continue
  total.failed -= failures.length
  total.passed += failures.length
  console.log(`UNSTEADY ${name}: ${failures.length} failed beside other suites and passed alone`)
}
console.log(`\n${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)

/**
 * Whether a busy machine may be why a test in real time failed. What random inputs found is not asked again: others would be tried.
 *
 * @param {Failure} failure
 */
function mayBeTheMachine({ file, text }) {
  // As fast-check and our own tests write it; an address of a page may hold one too.
  return file !== undefined && !/\bseed:? |SEED=/.test(text)
}
