import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CHROMIUM, launch, MISSING, serve, unserve } from './browser.ts'
import { type Held, Watched } from './leaks.ts'

/**
 * Bytes. Less than the runs of one scene would leak in two rounds, and more than a browser compiles meanwhile. That is 200 KB in the third
 * and fourth round, 500 KB until the fifteenth, and nothing afterwards.
 */
const SLACK = 400_000
/**
 * Since its third round the page keeps 14 more elements. Later rounds add none. `pnpm --dir packages/website leaks` sets higher values.
 */
const WARM_UP = Number(process.env['WEIR_LEAK_WARM_UP'] ?? 3)
const ROUNDS = Number(process.env['WEIR_LEAK_ROUNDS'] ?? 2)
const MINUTES = Number(process.env['WEIR_LEAK_MINUTES'] ?? 10)

describe.skipIf(CHROMIUM === undefined)(
  `the playground, watched for long${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
  { timeout: 3_600_000 },
  () => {
    let browser: Browser
    let root = ''
    beforeAll(async () => {
      root = await serve()
      browser = await launch()
    }, 60_000)
    afterAll(async () => {
      await browser.close()
      unserve()
    })

    test('keeps no memory of replaced runs or of watched minutes', async () => {
      const watched = await Watched.open(await browser.newPage(), root)
      await watched.start()
      for (let seed = 1; seed <= WARM_UP; seed++) await watched.round(seed)
      const before = await watched.held()
      for (let round = 0; round < ROUNDS; round++) await watched.round(1 + WARM_UP + round)
      grown(before, await watched.held())
      await watched.watch(60_000)
      const watching = await watched.held()
      await watched.watch((MINUTES - 1) * 60_000)
      grown(watching, await watched.held())
    })
  },
)

function grown(before: Held, after: Held): void {
  console.log(JSON.stringify({ before, after }))
  expect(after.workers).toBe(1)
  expect(after.nodes).toBeLessThanOrEqual(before.nodes)
  expect(after.listeners).toBeLessThanOrEqual(before.listeners)
  expect(after.page - before.page).toBeLessThan(SLACK)
  expect(after.worker - before.worker).toBeLessThan(SLACK)
}
