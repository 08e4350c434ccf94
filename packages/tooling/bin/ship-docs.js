#!/usr/bin/env node
// Copies pages of the documentation to `docs/` before a package is packed, because its errors, warnings and docstrings name them.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { errorPages } from '../src/error-pages.js'
import { shippedPages } from '../src/shipped-pages.js'
import { ROOT } from '../src/workspace.js'

const target = join(process.cwd(), 'docs')
const docs = join(ROOT, 'docs')
const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.md'))
  .map((path) => ({ path, text: readFileSync(join(docs, path), 'utf8') }))

rmSync(target, { recursive: true, force: true })
for (const { path, text } of shippedPages([...pages, ...errorPages(readFileSync(join(docs, 'reference/errors.md'), 'utf8'))])) {
  mkdirSync(dirname(join(target, path)), { recursive: true })
  writeFileSync(join(target, path), text)
}
