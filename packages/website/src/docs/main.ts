import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FIGURES } from './figures.ts'
import { replaceTable, tableOf } from './markdown.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const DOCS = join(ROOT, 'docs')
const IMAGES = join(DOCS, 'images')

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !FIGURES.some((figure) => figure.name === name))
if (unknown.length > 0 || wanted.includes('--help')) {
  console.error(`pnpm charts [name]...\n\nDraws the charts and measures the tables of docs/, all of them or those named:\n`)
  for (const { name, about } of FIGURES) console.error(`  ${name.padEnd(14)}${about}`)
  process.exit(2)
}

mkdirSync(IMAGES, { recursive: true })
for (const { name, about, make } of FIGURES) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  console.log(`${name}: ${about}`)
  const { charts = {}, tables = {} } = await make()
  for (const [file, svg] of Object.entries(charts)) writeFileSync(join(IMAGES, file), svg)
  for (const [table, rows] of Object.entries(tables)) {
    const text = typeof rows === 'string' ? rows : tableOf(rows)
    console.log(`\n${text}\n`)
    write(table, text)
  }
}

/** Writes a table into each page that has a marker for it. */
function write(name: string, table: string): void {
  let places = 0
  for (const file of pages()) {
    const text = readFileSync(file, 'utf8')
    const changed = replaceTable(text, name, table)
    if (changed === undefined) continue
    places++
    if (changed !== text) writeFileSync(file, changed)
  }
  if (places === 0) console.log(`No page has a place for the table "${name}".`)
}

function pages(): string[] {
  const below = readdirSync(DOCS, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))
  return [join(ROOT, 'README.md'), ...below.map((file) => join(DOCS, file))]
}
