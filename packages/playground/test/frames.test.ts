import { describe, expect, test } from 'vitest'
import { CHROMIUM, launch, MISSING, serve, unserve } from './browser.ts'
import { costOf } from './frames.ts'

/** Of a slow laptop. */
const SLOWER = 4
/** Milliseconds that a picture may take where there are sixty in a second. */
const ONE = 1000 / 60
/** `pnpm --dir packages/playground frames` takes more. */
const SECONDS = Number(process.env['WEIR_FRAMES_SECONDS'] ?? 4)

describe.skipIf(CHROMIUM === undefined)(`pictures${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`, () => {
  // Processor time is counted, not how long something took. It is half of what it may be, so other programs don't matter.
  test('of twelve nodes cost less than a sixtieth of a second of a processor four times slower', async () => {
    const root = await serve()
    const browser = await launch()
    try {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
      await page.goto(`${root}?scene=limit&nodes=12&load=20&limit=500&rtt=20`)
      await page.locator('[data-digest]').waitFor({ timeout: 60_000 })
      const cost = await costOf(browser, page, SLOWER, SECONDS)
      console.log(JSON.stringify(cost))
      expect(cost.scripts).toBeLessThan(ONE / 2)
      expect(cost.median).toBeLessThan(ONE)
    } finally {
      await browser.close()
      unserve()
    }
  })
})
