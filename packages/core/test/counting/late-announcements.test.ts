import { expect, test } from 'vitest'
import { Hub } from '../../src/hub/hub.ts'
import { memoryStore } from '../../src/hub/memory-store.ts'
import { type Algorithm, createThrottler, fixedWindow, slidingWindow } from '../../src/index.ts'
import type { Announcement } from '../../src/store/contract.ts'
import { systemClock } from '../../src/time/clock.ts'

/** A hub whose announcements arrive only when the test delivers them. */
class SlowHub extends Hub {
  readonly waiting: (() => void)[] = []

  override listen(listener: (announcement: Announcement) => void): () => void {
    return super.listen((announcement) => void this.waiting.push(() => listener(announcement)))
  }
}

test.each<[string, Algorithm]>([
  ['fixedWindow()', fixedWindow()],
  ['slidingWindow()', slidingWindow()],
])('%s: an announcement from before a refund that a reply has contained counts no refunded units', async (_name, algorithm) => {
  const hub = new SlowHub(systemClock)
  const throttler = createThrottler({ policies: [{ limit: 3, interval: '1h', algorithm }], store: memoryStore(hub) })
  throttler.check('a')
  await throttler.usage('a')
  await expect.poll(() => hub.waiting.length).toBeGreaterThan(0)
  throttler.refund('a', 1)
  await throttler.usage('a')
  expect(throttler.peek('a').remaining).toBe(3)
  for (const deliver of hub.waiting) deliver()
  expect(throttler.peek('a').remaining).toBe(3)
  await throttler.close()
})
