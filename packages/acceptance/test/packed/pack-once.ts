import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Packed, packPublicPackages } from '@weir/tooling/pack'
import { LOW_PRIORITY } from '@weir/tooling/vitest'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The public packages, packed as they would be published. */
    readonly packed: Packed[]
  }
}

/** Packs the packages once for all files, because one package takes as long as many tests. */
export default async function setup({ provide }: TestProject): Promise<() => void> {
  await import(LOW_PRIORITY)
  const folder = mkdtempSync(join(tmpdir(), 'weir-tarballs-'))
  provide('packed', await packPublicPackages(folder))
  return () => rmSync(folder, { recursive: true, force: true })
}
