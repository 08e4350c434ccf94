#!/usr/bin/env node
// Copies the documentation to `docs/` before a package is packed, because its errors and warnings name these pages.
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorPages } from '../src/error-pages.js'
import { ROOT } from '../src/workspace.js'

const target = join(process.cwd(), 'docs')
rmSync(target, { recursive: true, force: true })
cpSync(join(ROOT, 'docs'), target, { recursive: true, filter: (path) => statSync(path).isDirectory() || path.endsWith('.md') })
mkdirSync(join(target, 'errors'))
for (const { path, text } of errorPages(readFileSync(join(ROOT, 'docs/reference/errors.md'), 'utf8')))
  writeFileSync(join(target, path), text)
