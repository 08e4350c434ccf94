import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import type { AnyPolicyOptions } from '../../src/decide/policy.ts'
import { leakyBucket, limitedFetch } from '../../src/index.ts'
import { EACH_CELL } from '../support/cells.ts'
import { type Node, type Scene, scene, warnings } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const CALLS = 40

/** Lets virtual time pass, and code be loaded, which takes real time, until something is so. */
async function until(here: Scene, isSo: () => boolean): Promise<void> {
  // A busy machine may take many turns to load code.
  const deadline = performance.now() + 20_000
  while (!isSo() && performance.now() < deadline) {
    await new Promise((resolve) => setImmediate(resolve))
    await here.world.run(5)
  }
  expect(isSo()).toBe(true)
}

/** All that waits with a signal of the user's. */
const WAITS: Readonly<Record<string, (node: Node, signal: AbortSignal) => Promise<unknown>>> = {
  acquire: (node, signal) => node.acquire('a', { signal }),
  schedule: (node, signal) => node.schedule('a', () => {}, { signal }),
  wrap: (node, signal) => node.wrap(() => {}, { key: 'a', signal })(),
  limitedFetch: (node, signal) => limitedFetch(node, { key: 'a', fetch: async () => new Response() })('http://a', { signal }),
  hold: (node, signal) => node.waitFor(node.check('a'), signal),
}

const PACED = { name: 'paced', limit: 50, interval: 1_000, algorithm: leakyBucket(), coordination: 'local' } as const

for (const [title, loaded] of [
  ['the first requests of a process', false],
  ['later ones', true],
] as const) {
  for (const end of ['go', 'are aborted', 'are closed'] as const) {
    test.each(Object.keys(WAITS))(
      `many requests that wait with one signal add one listener until they ${end}, ${title}: %s`,
      async (call) => {
        const heard = warnings()
        const here = scene()
        const node = here.node(PACED, { alone: true, queue: { onClose: 'reject' } })
        if (loaded) await waiting(here, node)
        const controller = new AbortController()
        const { signal } = controller
        let ended = 0
        for (let i = 0; i < CALLS; i++) {
          WAITS[call]?.(node, signal)
            .catch(() => {})
            .finally(() => ended++)
        }
        await until(here, () => getEventListeners(signal, 'abort').length > 0)
        expect(getEventListeners(signal, 'abort')).toHaveLength(1)
        if (end === 'are aborted') controller.abort()
        else if (end === 'are closed') await here.close()
        await until(here, () => ended === CALLS)
        expect(getEventListeners(signal, 'abort')).toEqual([])
        await new Promise((resolve) => setImmediate(resolve))
        expect(heard).toEqual([])
        if (end === 'go') {
          // The signal may be used again.
          for (let i = 0; i < 5; i++) WAITS[call]?.(node, signal).catch(() => ended++)
          await until(here, () => getEventListeners(signal, 'abort').length === 1)
          controller.abort()
          await until(here, () => ended >= CALLS + 4)
          expect(getEventListeners(signal, 'abort')).toEqual([])
        }
        await here.close()
      },
    )
  }
}

test.each(EACH_CELL)('an aborted signal takes all out that wait with it, and nobody else: $name, $coordination', async (cell) => {
  const { algorithm, coordination } = cell
  const here = scene()
  const policy = { limit: 5, algorithm, coordination, ...(cell.name !== 'concurrency()' && { interval: 1_000 }) }
  const node = here.node(policy as unknown as AnyPolicyOptions, { alone: coordination === 'local' })
  const { acquire, ended } = await waiting(here, node)
  await here.world.run(1_500)
  const [one, other] = [new AbortController(), new AbortController()]
  const all = Array.from({ length: 30 }, (_, i) => acquire('a', { signal: i % 2 === 0 ? one.signal : other.signal, timeout: '20s' }))
  await here.world.run(100)
  one.abort()
  await here.world.settle()
  const left = all.filter((_, i) => i % 2 === 0)
  expect(left.every(({ at, failure, decision }) => at !== undefined && (failure === 'aborted' || decision?.allowed === true))).toBe(true)
  expect(ended.every(({ failure }) => failure === undefined || failure === 'aborted')).toBe(true)
  expect(getEventListeners(one.signal, 'abort')).toEqual([])
  expect(getEventListeners(other.signal, 'abort')).toHaveLength(1)
  other.abort()
  await here.close()
  expect(getEventListeners(other.signal, 'abort')).toEqual([])
})
