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
// Both formats have the same declarations. The package.json of their folder sets the format.
cpSync('dist/esm', 'dist/cjs', { recursive: true, filter: (path) => !/\.js(\.map)?$/.test(path) })
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')
