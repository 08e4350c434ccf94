// Runs every test that uses a seed, with a new seed in each round, until the time is over: `pnpm explore [minutes] [--workers 2]`.
import { randomInt } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureEtcdServer } from '../src/etcd-server.js'
import { finding, propertyFiles } from '../src/explore.js'
import { ensurePostgres } from '../src/postgres-server.js'
import { ensureRedisServer } from '../src/redis-server.js'
import { run } from '../src/run.js'
import { summaryFile } from '../src/summary-reporter.js'
import { ROOT } from '../src/workspace.js'

/** @import { Summary } from '../src/summary-reporter.js' */

const MINUTES = 10
/** The number of files in a run of Vitest. A run takes a second or two to load, and the deadline is checked only between runs. */
const GROUP = 8
const REPORTER = fileURLToPath(new URL('../src/summary-reporter.js', import.meta.url))
/** The number of characters at the end of a run's output that are shown if it ended without a result. */
const TAIL = 2_000

const { values, positionals } = parseArgs({ options: { workers: { type: 'string', default: '1' } }, allowPositionals: true })
const minutes = Number(positionals[0] ?? MINUTES)
const workers = Number(values.workers)
if (positionals.length > 1 || !(minutes > 0) || !(Number.isInteger(workers) && workers > 0)) {
  console.error('pnpm explore [minutes] [--workers <processes>]')
  process.exit(2)
}
const missing = await ensureRedisServer()
if (missing !== undefined) {
  console.error(missing)
  process.exit(1)
}
for (const skipped of [await ensureEtcdServer(), await ensurePostgres()]) if (skipped !== undefined) console.warn(skipped)

const groups = propertyFiles().flatMap(({ directory, files }) =>
  Array.from({ length: Math.ceil(files.length / GROUP) }, (_, i) => ({ directory, files: files.slice(i * GROUP, (i + 1) * GROUP) })),
)
const scratch = mkdtempSync(join(tmpdir(), 'weir-explore-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
const deadline = performance.now() + minutes * 60_000
const total = { rounds: 0, tests: 0, cases: 0, failed: 0 }

while (performance.now() < deadline) await round(randomInt(1, 2 ** 31), ++total.rounds)
const { rounds, tests, cases, failed } = total
console.log(`\n${count(rounds, 'round')}, ${count(tests, 'test')}, ${count(cases, 'case')}, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)

/**
 * @param {number} seed
 * @param {number} ordinal
 */
async function round(seed, ordinal) {
  const before = { ...total }
  const began = performance.now()
  console.log(`round ${ordinal}: seed ${seed}`)
  const queue = shuffled(groups)
  let done = 0
  await Promise.all(
    Array.from({ length: workers }, async (_, worker) => {
      for (let next = queue.pop(); next !== undefined && performance.now() < deadline; next = queue.pop()) {
        await explore(next, seed, worker)
        done++
      }
    }),
  )
  const part = done < groups.length ? ` (time is over: ${done} of ${groups.length} groups of files)` : ''
  console.log(
    `round ${ordinal}: ${count(total.tests - before.tests, 'test')}, ${count(total.cases - before.cases, 'case')}, ` +
      `${total.failed - before.failed} failed, ${((performance.now() - began) / 1000).toFixed(0)} s${part}`,
  )
}

/**
 * @param {{ directory: string, files: string[] }} group
 * @param {number} seed
 * @param {number} worker
 */
async function explore({ directory, files }, seed, worker) {
  const script = `explore:${worker}`
  const summary = join(directory, summaryFile(script))
  const counts = join(scratch, `cases-${worker}`)
  for (const file of [summary, counts]) rmSync(file, { force: true })
  const env = { ...process.env, FC_SEED: `${seed}`, WEIR_CASES: counts, npm_lifecycle_event: script }
  const vitest = join(directory, 'node_modules/.bin/vitest')
  const { output } = await run(vitest, ['run', '--maxWorkers=1', `--reporter=${REPORTER}`, ...files], { cwd: directory, env })
  if (existsSync(counts))
    total.cases += readFileSync(counts, 'utf8')
      .split('\n')
      .reduce((sum, line) => sum + Number(line), 0)
  if (!existsSync(summary)) {
    total.failed++
    console.log(`FAILED ${relative(ROOT, directory)}: ended without a result, seed ${seed}: ${files.join(' ')}\n${output.slice(-TAIL)}\n`)
    return
  }
  /** @type {Summary} */
  const found = JSON.parse(readFileSync(summary, 'utf8'))
  rmSync(summary)
  total.tests += found.passed + found.failed
  total.failed += found.failed
  for (const failure of found.failures) console.log(`${finding(failure, directory, seed)}\n`)
}

/**
 * @template T
 * @param {readonly T[]} list
 * @returns {T[]}
 */
function shuffled(list) {
  return list
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

/**
 * @param {number} n
 * @param {string} noun
 */
function count(n, noun) {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`
}
