// Runs the whole suite on each supported Node.js line and prints a table. Arguments are versions: `pnpm test:matrix 22 26`.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureEtcdServer } from '../src/etcd-server.js'
import { onNode } from '../src/node.js'
import { ensurePostgres } from '../src/postgres-server.js'
import { ensureRedisServer } from '../src/redis-server.js'
import { mustRun, run } from '../src/run.js'
import { ROOT } from '../src/workspace.js'

const wanted = process.argv.slice(2)
const versions = wanted.length > 0 ? wanted : ['20', '22', '24', '26']
const bad = versions.find((version) => !/^\d+(\.\d+){0,2}$/.test(version))
if (bad !== undefined) {
  console.error(`${JSON.stringify(bad)} is not a Node.js version. Use for example 22 or 24.1.0`)
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
const rows = [['node', 'result', 'seconds']]
let failed = false
for (const version of versions) {
  const started = performance.now()
  const env = await onNode(version)
  const release = (await mustRun('node', ['--version'], { env })).trim()
  console.log(`running on ${release}`)
  const { status, stdout, output } = await run('node', [join(ROOT, 'packages/tooling/bin/test.js')], { cwd: ROOT, env })
  const log = join(logs, `${release}.log`)
  writeFileSync(log, output)
  const last = stdout.trim().split('\n').at(-1) ?? ''
  if (status !== 0) {
    failed = true
    console.log(`${output.trim().split('\n').slice(-60).join('\n')}\nthe whole output: ${log}`)
  }
  rows.push([release, /^\d+ passed, \d+ failed$/.test(last) ? last : 'did not finish', ((performance.now() - started) / 1000).toFixed(0)])
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
