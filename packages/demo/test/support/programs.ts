import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bundlePrograms } from '@weir/tooling/bundle'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the demo's programs. */
    readonly programs: string
  }
}

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))

/** Bundles the programs, because the tests start hundreds of processes. One test also starts them from source, in a terminal. */
export default async function setup({ provide }: TestProject): Promise<() => void> {
  const children = ['backend', 'gateway', 'redis-keeper', 'server-keeper'].map((name) => `src/processes/${name}.ts`)
  const folder = await bundlePrograms(PACKAGE, ['src/main.ts', ...children], ['express', 'fastify', 'ioredis', 'koa'])
  provide('programs', folder)
  return () => rmSync(folder, { recursive: true, force: true })
}
