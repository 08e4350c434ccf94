// Runs all checks except the tests: lint, types, boundaries, words, packaging, manifests, links, the site. Arguments name single steps:
// `pnpm check lint types`.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { boundaryViolations } from '../src/boundaries.js'
import { chanceViolations } from '../src/chance.js'
import { commentViolations } from '../src/comments.js'
import { packPublicPackages } from '../src/pack.js'
import { roomViolations } from '../src/rooms.js'
import { run } from '../src/run.js'
import { wordViolations } from '../src/words.js'
import { ROOT, workspacePackages } from '../src/workspace.js'

/** @import { Violation } from '../src/boundaries.js' */
/** @typedef {{ ok: boolean, output: string }} Result */

const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1' }

/**
 * @param {string} command
 * @param {...string} args
 * @returns {Promise<Result>}
 */
async function tool(command, ...args) {
  const { status, output } = await run(command, args, { cwd: ROOT, env })
  return { ok: status === 0, output }
}

/**
 * Runs a script of the top package.json.
 *
 * @param {string} name
 */
const script = (name) => tool('pnpm', 'run', '--silent', name)

/** @returns {Promise<Result>} */
async function boundaries() {
  return resultOf([
    ...boundaryViolations(ROOT),
    ...workspacePackages().flatMap(({ directory }) => roomViolations(directory)),
    ...chanceViolations(),
    ...commentViolations(),
  ])
}

/** @returns {Promise<Result>} */
async function words() {
  return resultOf(wordViolations())
}

/**
 * @param {readonly Violation[]} found
 * @returns {Result}
 */
function resultOf(found) {
  return { ok: found.length === 0, output: found.map(({ file, rule, message }) => `${file}: ${message} (${rule})`).join('\n') }
}

/** @returns {Promise<Result>} */
async function packaging() {
  const scratch = mkdtempSync(join(tmpdir(), 'weir-check-'))
  const bin = join(ROOT, 'packages/tooling/node_modules/.bin')
  try {
    const results = await Promise.all(
      (await packPublicPackages(scratch)).map(async ({ tarball }) => {
        const publint = await tool(join(bin, 'publint'), 'run', '--strict', tarball)
        const attw = await tool(join(bin, 'attw'), '--format', 'ascii', tarball)
        return [publint, attw].filter(({ ok }) => !ok).map(({ output }) => `${basename(tarball)}\n${output}`)
      }),
    )
    return { ok: results.flat().length === 0, output: results.flat().join('\n') }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/**
 * The checks by name. Slow ones start first.
 *
 * @type {Record<string, () => Promise<Result>>}
 */
const steps = {
  types: () => script('typecheck'),
  site: () => script('site:check'),
  packaging,
  lint: () => script('lint'),
  boundaries,
  words,
  knip: () => script('knip'),
  links: () => script('links'),
  size: () => script('size'),
  sherif: () => script('sherif'),
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => steps[name] === undefined)
if (unknown.length > 0) {
  console.error(`No step is named ${unknown.join(', ')}; there are ${Object.keys(steps).join(', ')}`)
  process.exit(2)
}
/** The number of steps that run at a time. Most are programs of one thread. */
const LANES = 2
const chosen = Object.entries(steps).filter(([name]) => wanted.length === 0 || wanted.includes(name))
/** @type {Map<string, Result>} */
const results = new Map()
let told = 0
let failed = 0

/** Prints results in the order of the steps, even if a later step ends first. */
function tell() {
  for (const [name] of chosen.slice(told)) {
    const result = results.get(name)
    if (result === undefined) return
    told++
    console.log(`${result.ok ? 'ok    ' : 'FAILED'} ${name}`)
    if (result.ok) continue
    failed++
    console.log(stripVTControlCharacters(result.output).trimEnd().replace(/^/gm, '       '))
  }
}

const waiting = chosen.values()
const lanes = Array.from({ length: LANES }, async () => {
  for (const [name, step] of waiting) {
    results.set(name, await step().catch((error) => ({ ok: false, output: String(error) })))
    tell()
  }
})
await Promise.all(lanes)
console.log(failed === 0 ? '\nall checks passed' : `\n${failed} ${failed === 1 ? 'check' : 'checks'} failed`)
process.exit(failed === 0 ? 0 : 1)
