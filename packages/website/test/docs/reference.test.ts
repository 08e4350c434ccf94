import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { METRICS } from '@weir/metrics'
import { afterAll, expect, test } from 'vitest'
import { replaceTable } from '../../src/docs/markdown.ts'
import { COMMANDS } from '../../src/docs/reference/command-line.ts'
import { MEMBER_TABLES, membersOf } from '../../src/docs/reference/members.ts'
import { METRIC_TABLES } from '../../src/docs/reference/metrics.ts'
import { EXPLAINED, OPTION_TABLES, typeOf, UNEXPLAINED } from '../../src/docs/reference/options.ts'
import { type PublicOption, publicOptions } from '../../src/docs/reference/public-options.ts'
import { referenceTables } from '../../src/docs/reference/reference.ts'
import { Sources } from '../../src/docs/reference/sources.ts'
import { pages, ROOT } from './pages.ts'

const sources = new Sources('reference-test')
afterAll(() => sources.close())

const options = publicOptions(sources, sources.entries)

test('the tables agree with the sources; if not, run `pnpm charts reference`', async () => {
  const tables = await referenceTables(sources, options)
  for (const { text } of pages())
    for (const [name, table] of Object.entries(tables))
      expect(replaceTable(text, name, table) ?? text, 'Run `pnpm charts reference`').toBe(text)
})

test('each public option is in a table, or on the page that explains its type', () => {
  const others = options.filter((option) => !isInTable(option) && !UNEXPLAINED.some((type) => type.test(typeOf(option))))
  const missing = others.filter((option) => {
    const page = EXPLAINED[typeOf(option)]
    return page === undefined || !new RegExp(`\\b${option.name}\\b`).test(readFileSync(join(ROOT, page), 'utf8'))
  })
  expect(missing.map(({ place }) => place)).toEqual([])
})

test('each public member of a throttler is in a table', () => {
  const listed = Object.values(MEMBER_TABLES).flatMap(({ of, only }) => (of === 'Throttler' ? (only ?? []) : []))
  expect([...membersOf('Throttler', sources).keys()].sort()).toEqual([...listed].sort())
})

test('each metric is in a table', () => {
  expect(Object.values(METRIC_TABLES).flat().sort()).toEqual(METRICS.map(({ name }) => name).sort())
})

test('each command is on the page', () => {
  const [, listed = ''] = /^Commands:\n([\s\S]*?)\n\n/m.exec(readFileSync(join(ROOT, 'docs/reference/command-line.md'), 'utf8')) ?? []
  const names = [...listed.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name)
  expect(names.filter((name) => name !== 'help')).toEqual(COMMANDS)
})

function isInTable(option: PublicOption): boolean {
  return Object.values(OPTION_TABLES).some(({ from, only }) => from.includes(typeOf(option)) && only?.includes(option.name) !== false)
}
