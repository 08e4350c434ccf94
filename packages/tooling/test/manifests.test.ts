import { build } from 'esbuild'
import { describe, expect, it } from 'vitest'
import { SOURCE_CONDITION } from '../src/vitest.js'
import { publicPackages } from '../src/workspace.js'

describe.each(publicPackages().map(({ manifest }) => [manifest.name, manifest] as const))('the manifest of %s', (_name, manifest) => {
  it('ends each peer range before the next major version, which nobody has tried', () => {
    const ranges = Object.entries(manifest.peerDependencies ?? {})
    const open = ranges.filter(([, range]) => !range.split('||').every((part) => /^\s*([\^~]\d|\d|.*<)/.test(part)))
    expect(open).toEqual([])
  })
})

describe('a bundler without a plugin for CommonJS', () => {
  // `@weir/core/http` and `/rules` need path-to-regexp, which has no other form.
  it.each(['@weir/core', '@weir/core/sync', '@weir/core/memory', '@weir/core/inspect', '@weir/core/ipc', '@weir/core/leases'])(
    'can bundle %s',
    async (entry) => {
      const core = publicPackages().find(({ manifest }) => manifest.name === '@weir/core')
      const { metafile } = await build({
        stdin: { contents: `export * from '${entry}'`, resolveDir: core?.directory ?? '' },
        bundle: true,
        write: false,
        metafile: true,
        format: 'esm',
        platform: 'node',
        conditions: [SOURCE_CONDITION],
      })
      const inputs = Object.entries(metafile.inputs)
      expect(inputs.length).toBeGreaterThan(1)
      expect(inputs.filter(([, { format }]) => format === 'cjs')).toEqual([])
    },
  )
})
