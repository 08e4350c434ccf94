import { execFile } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '@weir/tooling/bundle'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Case } from '../programs/case-reporter.ts'
import { EXCEPTIONS } from './exceptions.ts'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
const PUBLISHED = join(PACKAGE, 'node_modules/@fastify/rate-limit/test')
/** In the version that is installed, without a skipped one. If it changes, read the new cases. */
const CASES = 113

let folder: string
let cases: readonly (Case & { readonly title: string })[]

beforeAll(async () => {
  const sources = ['fastify-with-our-store', 'case-reporter'].map((name) => `test/programs/${name}.ts`)
  folder = await bundlePrograms(PACKAGE, sources, ['fastify', '@fastify/rate-limit'])
  const files = readdirSync(PUBLISHED, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.js'))
  const options = [
    '--no-warnings',
    `--import=${folder}/fastify-with-our-store.mjs`,
    '--test',
    `--test-reporter=${folder}/case-reporter.mjs`,
  ]
  const output = await outputOf([...options, ...files.map((name) => join(PUBLISHED, name))])
  const found = output.split('\n').filter(Boolean)
  cases = found.map((line) => JSON.parse(line)).map((one: Case) => ({ ...one, title: `${basename(one.file, '.test.js')}: ${one.name}` }))
}, 240_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Its exit code is 1, because the exceptions fail. */
function outputOf(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: PACKAGE, maxBuffer: 2 ** 26, timeout: 200_000 }, (_error, stdout, stderr) => {
      process.stderr.write(stderr)
      resolve(stdout)
    })
  })
}

test('runs all cases that @fastify/rate-limit publishes', () => {
  expect(cases.length).toBe(CASES)
})

test('the published cases pass with fastifyRateLimitStore, except those listed', () => {
  const failed = cases.filter(({ error }) => error !== undefined)
  const listed = EXCEPTIONS.flatMap((exception) => exception.cases)
  const surprises = failed.filter(({ title }) => !listed.includes(title))
  expect(surprises.map(({ title, error }) => `${title}\n${error}`)).toEqual([])
  expect(failed.map(({ title }) => title).sort()).toEqual(listed.sort())
})
