#!/usr/bin/env node
// Before a package is packed: the pages that its errors and warnings name go with it, in `docs/`.
import { cpSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../src/workspace.js'

const target = join(process.cwd(), 'docs')
rmSync(target, { recursive: true, force: true })
cpSync(join(ROOT, 'docs'), target, { recursive: true, filter: (path) => statSync(path).isDirectory() || path.endsWith('.md') })
