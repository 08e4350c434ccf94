import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packPublicPackages } from '@weir/tooling/pack'
import { mustRun } from '@weir/tooling/run'
import { build } from 'esbuild'

const PACKAGE = fileURLToPath(new URL('../../..', import.meta.url))
/** Packages that attacked processes need in addition to ours. The older major versions are installed under other names. */
const FRAMEWORKS = ['@koa/router', 'express', 'express4', 'fastify', 'fastify4', 'ioredis', 'koa', 'koa2'] as const

/**
 * Makes a project outside the workspace that has the packed packages installed and the program of attacked processes.
 *
 * @returns the program's file
 */
export async function makeProject(directory: string): Promise<string> {
  const packed = await packPublicPackages(join(directory, 'tarballs'))
  const dependencies: Record<string, string> = {}
  for (const { manifest, tarball } of packed) dependencies[manifest.name] = `file:${tarball}`
  for (const name of FRAMEWORKS) dependencies[name] = installed(name)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'attacked', private: true, type: 'module', dependencies }))
  const env = { ...process.env, NODE_ENV: 'development', CI: 'true' }
  const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-package-lock', '--legacy-peer-deps']
  await mustRun('npm', args, { cwd: directory, env })
  await build({
    entryPoints: [join(PACKAGE, 'src/attack/harness/child.ts')],
    outfile: join(directory, 'child.js'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['@weir/*', ...FRAMEWORKS],
    logLevel: 'error',
  })
  return join(directory, 'child.js')
}

/** The version from this repository's lockfile, so that all runs attack the same one. */
function installed(name: string): string {
  const manifest = JSON.parse(readFileSync(join(PACKAGE, 'node_modules', name, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly version: string
  }
  return manifest.name === name ? manifest.version : `npm:${manifest.name}@${manifest.version}`
}
