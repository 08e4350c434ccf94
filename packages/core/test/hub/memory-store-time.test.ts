import { expect, test } from 'vitest'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { ManualTime } from '../http/manual-time.ts'

test('a memory store goes by the clock of its throttlers, and not by the system beside it', async () => {
  const clock = new ManualTime(5_000)
  const node = memoryStore().open({ id: 'one', clock, announced: () => {} })
  const { time } = await node.sync({ entries: [], blocks: [] })
  expect(time).toBe(clock.now())
  await node.close()
})
