#!/usr/bin/env node
// Builds the package in the current directory to dist/esm and dist/cjs, each with its own declarations.
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { shortenScripts } from '../src/shorten-scripts.js'

rmSync('dist', { recursive: true, force: true })
for (const project of ['tsconfig.esm.json', 'tsconfig.cjs.json']) {
  const { status } = spawnSync('tsc', ['-b', project], { stdio: 'inherit', shell: process.platform === 'win32' })
  if (status !== 0) process.exit(status ?? 1)
}
for (const leftover of ['dist/tsconfig.esm.tsbuildinfo', 'dist/tsconfig.cjs.tsbuildinfo']) rmSync(leftover, { force: true })
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')
await shortenScripts('dist')
