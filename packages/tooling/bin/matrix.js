// Runs the whole suite on each supported Node.js line, and the adapter contract on Bun, on Deno and in workerd, and prints a table.
// Arguments are Node.js versions and names of runtimes: `pnpm test:matrix 22 26 bun`.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { ensureEtcdServer } from '../src/etcd-server.js'
import { onNode } from '../src/node.js'
import { ensurePostgres } from '../src/postgres-server.js'
import { ensureRedisServer } from '../src/redis-server.js'
import { mustRun, run } from '../src/run.js'
import { isRuntime, RUNTIMES, runtimeCommand } from '../src/runtimes.js'
import { summaryFile } from '../src/summary-reporter.js'
import { ROOT } from '../src/workspace.js'

/** @import { Runtime } from '../src/runtimes.js' */
/** @import { Summary } from '../src/summary-reporter.js' */

/** The test files that run on Bun and Deno, by package. */
const ON_RUNTIMES = {
  express: ['test/adapter-contract'],
  fastify: ['test/adapter-contract'],
  koa: ['test/adapter-contract'],
  hono: ['test/adapter-contract'],
  web: ['test/adapter-contract'],
  core: ['test/algorithms', 'test/central', 'test/counting', 'test/decide', 'test/http/request', 'test/leases', 'test/queue'],
}

/** The test files that run Workers in workerd, by package. Vitest itself runs on Node.js. */
const IN_WORKERD = { workers: ['test/adapter-contract-in-workerd', 'test/contract-in-workerd', 'test/workerd'] }

const wanted = process.argv.slice(2)
const lines = wanted.length > 0 ? wanted : ['20', '22', '24', '26', ...RUNTIMES, 'workerd']
const bad = lines.find((line) => line !== 'workerd' && !isRuntime(line) && !/^\d+(\.\d+){0,2}$/.test(line))
if (bad !== undefined) {
  console.error(`${JSON.stringify(bad)} is not a Node.js version or runtime. Use for example 22, 24.1.0, ${RUNTIMES.join(', ')} or workerd`)
  process.exit(2)
}
const missing = await ensureRedisServer()
if (missing !== undefined) {
  console.error(missing)
  process.exit(1)
}
for (const skipped of [await ensureEtcdServer(), await ensurePostgres()]) if (skipped !== undefined) console.warn(skipped)

const logs = join(ROOT, 'node_modules', '.weir-matrix')
mkdirSync(logs, { recursive: true })
const rows = [['runtime', 'result', 'seconds']]
let failed = false
for (const line of lines) {
  const started = performance.now()
  const { release, result, status, output } = await runOn(line)
  const log = join(logs, `${release}.log`)
  writeFileSync(log, output)
  if (status !== 0) {
    failed = true
    console.log(`${output.trim().split('\n').slice(-60).join('\n')}\nthe whole output: ${log}`)
  }
  rows.push([release, result ?? 'did not finish', ((performance.now() - started) / 1000).toFixed(0)])
}

/** @typedef {{ release: string, result: string | undefined, status: number, output: string }} Row */

/** @type {(line: string) => Promise<Row>} */
async function runOn(line) {
  if (isRuntime(line)) return onRuntime(line)
  return line === 'workerd' ? inWorkerd() : onVersion(line)
}

/** @type {(version: string) => Promise<Row>} */
async function onVersion(version) {
  const env = await onNode(version)
  const release = (await mustRun('node', ['--version'], { env })).trim()
  console.log(`running on ${release}`)
  const { status, stdout, output } = await run('node', [join(ROOT, 'packages/tooling/bin/test.js')], { cwd: ROOT, env })
  const last = stdout.trim().split('\n').at(-1) ?? ''
  return { release, result: /^\d+ passed, \d+ failed$/.test(last) ? last : undefined, status, output }
}

/** @type {(runtime: Runtime) => Promise<Row>} */
async function onRuntime(runtime) {
  const { file, args } = runtimeCommand(runtime)
  const release = `${runtime} ${(await mustRun(file, ['--version'])).match(/\d+(\.\d+)+/)?.[0]}`
  return runFiles(runtime, release, file, args, ON_RUNTIMES)
}

/** @type {() => Promise<Row>} */
function inWorkerd() {
  const { version } = createRequire(import.meta.url)('workerd/package.json')
  return runFiles('workerd', `workerd ${version}`, process.execPath, [], IN_WORKERD)
}

/** @type {(name: string, release: string, program: string, args: readonly string[], tests: Readonly<Record<string, readonly string[]>>) => Promise<Row>} */
async function runFiles(runtime, release, program, args, tests) {
  console.log(`running on ${release}`)
  const script = `test:${runtime}`
  const total = { passed: 0, failed: 0, status: 0, output: '' }
  for (const [name, files] of Object.entries(tests)) {
    const cwd = join(ROOT, 'packages', name)
    const summary = join(cwd, summaryFile(script))
    rmSync(summary, { force: true })
    const env = { ...process.env, npm_lifecycle_event: script }
    const { status, output } = await run(program, [...args, join('node_modules', 'vitest', 'vitest.mjs'), 'run', ...files], { cwd, env })
    total.output += output
    try {
      /** @type {Summary} */
      const { passed, failed } = JSON.parse(readFileSync(summary, 'utf8'))
      total.passed += passed
      total.failed += failed
    } catch {
      return { ...total, release, result: undefined, status: 1 }
    }
    total.status = Math.max(total.status, status)
  }
  return { ...total, release, result: `${total.passed} passed, ${total.failed} failed` }
}

const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
console.log()
for (const row of rows)
  console.log(
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
process.exit(failed ? 1 : 0)
