import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FIGURES } from '../../src/docs/figures.ts'
import { replaceTable, tableOf } from '../../src/docs/markdown.ts'
import { pages, ROOT } from './pages.ts'

const made = FIGURES.flatMap(({ makes }) => makes)
const isImage = (name: string): boolean => /\.(svg|webp)$/.test(name)
const text = pages()
  .map((page) => page.text)
  .join('\n')

test('every table with a mark is made by a command, and every one that is made has a place', () => {
  const marks = [...text.matchAll(/<!-- table:([\w-]+) -->/g)].map(([, name]) => name)
  expect(new Set(marks)).toEqual(new Set(made.filter((name) => !isImage(name))))
})

test('every chart is made by a command and shown', () => {
  const files = readdirSync(join(ROOT, 'docs/images'))
  expect(new Set(files)).toEqual(new Set(made.filter(isImage)))
  expect(files.filter((file) => !text.includes(`images/${file})`))).toEqual([])
})

test('a table replaces the one before it and nothing else', () => {
  const table = tableOf([
    ['a', 'b'],
    ['1', '2'],
  ])
  const before = 'x\n<!-- table:one -->\nold\n<!-- /table -->\ny <!-- table:two -->\n<!-- /table -->'
  expect(replaceTable(before, 'one', table)).toBe(
    'x\n<!-- table:one -->\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<!-- /table -->\ny <!-- table:two -->\n<!-- /table -->',
  )
  expect(replaceTable(before, 'three', table)).toBeUndefined()
})
