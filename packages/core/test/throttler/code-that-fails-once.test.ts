import { outOfFiles } from '@weir/tooling/out-of-files'
import { beforeAll, expect, test, vi } from 'vitest'
import type { Scene } from '../support/nodes.ts'

// As in a process in which nothing of it was loaded yet: code that is there can't fail any more.
let scene: typeof import('../support/nodes.ts').scene
let cluster: typeof import('../../src/inspect/index.ts').cluster
beforeAll(async () => {
  vi.resetModules()
  ;({ scene } = await import('../support/nodes.ts'))
  ;({ cluster } = await import('../../src/inspect/index.ts'))
})

/** Two nodes without descriptors. */
async function started(limit: number) {
  const it = scene()
  const files = outOfFiles()
  const nodes = [0, 1].map(() => it.node({ limit, interval: 10_000 }))
  for (const node of nodes) node.start()
  await it.world.run(3_000)
  return { ...it, files, nodes: nodes as [ReturnType<Scene['node']>, ReturnType<Scene['node']>] }
}

test('usage() rejects while its code can not be loaded, and answers afterwards', async () => {
  const { world, files, nodes, close } = await started(50)
  const [node] = nodes
  node.check('k')
  const failed = node.usage('k').catch((error: unknown) => error)
  await world.run(3_000)
  expect(await failed).toMatchObject({ code: 'WEIR_NOT_LOADED' })
  files.end()
  await vi.waitFor(async () => {
    const asked = node.usage('k').catch(() => undefined)
    await world.run(2_000)
    expect(await asked).toMatchObject([{ used: 1, limit: 50 }])
  })
  await close()
})

test('a view of the cluster shows the other nodes once their code can be loaded', async () => {
  const { world, files, nodes, close } = await started(50)
  const seen = async (): Promise<number> => {
    cluster(nodes[0])
    await world.run(1_000)
    return cluster(nodes[0]).length
  }
  for (let i = 0; i < 5; i++) expect(await seen()).toBe(1)
  files.end()
  await vi.waitFor(async () => expect(await seen()).toBe(2))
  await close()
})

test('a small limit is warned of once the code for it can be loaded', async () => {
  const { world, files, nodes, close } = await started(2)
  const warned: string[] = []
  for (const node of nodes) node.on('warning', ({ error }) => warned.push(error.code))
  await world.run(5_000)
  expect(warned).toEqual([])
  files.end()
  await vi.waitFor(async () => {
    await world.run(1_000)
    expect(warned).toContain('WEIR_WARN_SMALL_LIMIT')
  })
  await close()
})
