#!/usr/bin/env node
// Builds the package in the current directory to dist/esm and dist/cjs, each with its own declarations.
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { run } from '../src/run.js'
import { bundlePackage } from '../src/ship.js'

rmSync('dist', { recursive: true, force: true })
const types = run('tsc', ['-p', 'tsconfig.esm.json', '--emitDeclarationOnly'], { inherit: true })
await bundlePackage()
const { status } = await types
if (status !== 0) process.exit(status)
// The same for both, in the folder whose package.json gives their kind.
cpSync('dist/esm', 'dist/cjs', { recursive: true, filter: (path) => !/\.js(\.map)?$/.test(path) })
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')
