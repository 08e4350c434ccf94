import { fileURLToPath } from 'node:url'
import { storeContract } from '@weir/testing'
import { bundleWorker, Workerd } from '@weir/tooling/workerd'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { durableObjectStore } from '../src/index.ts'

let workerd: Workerd
beforeAll(async () => {
  const code = await bundleWorker(fileURLToPath(new URL('worker.ts', import.meta.url)))
  workerd = await Workerd.start(code, 1, { WEIR: 'TestHub', BROKEN: 'BrokenHub' })
})
afterAll(() => workerd?.close())

let made = 0

/** Calls an object in workerd through a Worker. */
async function call(object: string, method: string, values: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ object, method, values: values.map((value) => value ?? null) })
  const response = await workerd.fetch(0, '/call', { method: 'POST', body })
  if (!response.ok) throw new Error(await response.text())
  const result = ((await response.json()) as unknown) ?? undefined
  if (method === 'sync' && result !== undefined) {
    const { reply } = result as { readonly reply: { readonly results: unknown[]; readonly blocks: unknown[] } }
    for (const list of [reply.results, reply.blocks]) for (const [i, part] of list.entries()) list[i] = part ?? undefined
  }
  return result
}

storeContract(
  'an object in workerd',
  () => {
    const own = ++made
    let isDown = false
    const objects = {
      idFromName: (name: string) => `${own} ${name}`,
      get: (id: string) =>
        new Proxy(
          {},
          {
            get:
              (_, method) =>
              (...values: unknown[]) =>
                isDown ? Promise.reject(new Error('down')) : call(id, String(method), values),
          },
        ),
    }
    const store = durableObjectStore(objects)
    return {
      connect: (node) => store.open(node),
      goAway: async () => {
        isDown = true
        return () => {
          isDown = false
        }
      },
      close: () => {},
    }
  },
  {
    describe,
    test: test.concurrent,
    without: {
      lose: 'its storage is on disk',
      leftovers: 'storage is cleaned with the next sync',
      announcements: 'they come with later syncs',
      decisions: 'requests over HTTP may overtake each other',
    },
  },
)
