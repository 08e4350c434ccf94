import { expect, onTestFinished, test } from 'vitest'
import { createThrottler, fixedWindow, type PolicyOptions, slidingWindow, WeirError } from '../src/index.ts'
import { backgroundStore, type Cell, type StoreNode, type SyncEntry } from '../src/sync/index.ts'
import { World } from './support/world.ts'

/** A throttler whose store keeps one node's counts of one key, until the test takes them away. */
async function start(policy: PolicyOptions) {
  const world = new World()
  const clock = world.clock()
  const sent: SyncEntry[] = []
  const cells = new Map<number, Cell>()
  let node: StoreNode | undefined
  const throttler = createThrottler({
    clock,
    policies: [policy],
    heartbeat: 100,
    store: backgroundStore({
      kind: 'forgetful',
      open(opened) {
        node = opened
        return {
          close: async () => {},
          sync: async ({ entries, blocks, heartbeat }) => {
            sent.push(...entries)
            for (const entry of entries) for (const cell of entry.cells) if (cell.taken > 0) cells.set(cell.ordinal, cell)
            return {
              time: clock.now(),
              results: entries.map((entry) => ({
                cells: entry.policy.cells === 1 ? entry.cells : [...cells.values()].sort((a, b) => a.ordinal - b.ordinal),
                blocked: 0,
              })),
              blocks: blocks.map(() => 0),
              ...(heartbeat && { heartbeat: { nodes: 2, generation: '1', cursor: '1', blocks: [], hot: [] } }),
            }
          },
        }
      },
    }),
  })
  onTestFinished(async () => {
    const closed = throttler.close()
    await world.run(10_000)
    await closed
  })
  throttler.start()
  await world.run(200)
  return { world, throttler, sent, cells, node: node as StoreNode }
}

test.each(['fixed', 'sliding'] as const)(
  'in a %s window counts are sent again once, when an announced total lacks them',
  async (window) => {
    const { world, throttler, sent, node } = await start({
      name: 'p',
      limit: 10,
      interval: '1h',
      algorithm: window === 'sliding' ? slidingWindow() : fixedWindow(),
    })
    for (let i = 0; i < 6; i++) throttler.check('key')
    await world.run(3_600_000 / 6)
    const last = sent.at(-1) as SyncEntry
    expect(last.cells.at(-1)?.taken).toBe(6)
    const before = sent.length
    const announce = (taken: number): void => {
      const [{ ordinal }] = last.cells as [Cell]
      node.announced({ type: 'total', policyId: last.policy.id, key: last.key, cells: [{ ordinal, taken, given: 0 }] })
    }
    const { remaining } = throttler.peek('key')
    announce(6)
    await world.run(100)
    expect(sent).toHaveLength(before)
    announce(2)
    await world.run(100)
    expect(sent.slice(before).map(({ cells }) => cells)).toEqual([last.cells])
    // Confirmed counts stay, and none are added.
    expect(throttler.peek('key').remaining).toBe(remaining)
  },
)

test('a sliding window’s counts are sent again when a reply lacks them, but not for ever', async () => {
  const { world, throttler, sent, cells } = await start({
    name: 'p',
    limit: 100,
    interval: '1h',
    algorithm: slidingWindow({ subWindows: 6 }),
  })
  for (let i = 0; i < 40; i++) throttler.check('key')
  await world.run(600_000)
  expect(cells.size).toBe(1)
  const [[first, cell]] = [...cells] as [[number, Cell]]
  cells.delete(first)
  for (let i = 0; i < 30; i++) throttler.check('key')
  await world.run(600_000)
  expect(cells.get(first)).toEqual(cell)
  const before = sent.length
  await world.run(60_000)
  expect(sent.length).toBe(before)
})

test('what a store warns of becomes a warning of the throttler, each time', async () => {
  const { throttler, node } = await start({ name: 'p', limit: 10, interval: '1h' })
  const heard: WeirError[] = []
  throttler.on('warning', ({ error }) => heard.push(error))
  const errors = ['one', 'two'].map((message) => new WeirError('WEIR_WARN_STORE_VALUE', message))
  for (const error of errors) node.warned?.(error)
  // A store may warn in the middle of a step. Listeners get the warning afterwards.
  await undefined
  expect(heard).toEqual(errors)
})
