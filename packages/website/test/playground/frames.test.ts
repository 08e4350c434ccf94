import { describe, expect, test } from 'vitest'
import { CHROMIUM, launch, MISSING, serve, unserve } from './browser.ts'
import { costOf } from './frames.ts'

/** The slowdown of a slow laptop. */
const SLOWER = 4
/** Milliseconds per picture, at sixty pictures a second. */
const ONE = 1000 / 60
/** Set by `pnpm --dir packages/website frames`, which measures. Other programs on the machine make pictures more expensive. */
const MEASURED = process.env['WEIR_FRAMES_SECONDS']
const SECONDS = Number(MEASURED ?? 4)

describe.skipIf(CHROMIUM === undefined)(`pictures${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`, () => {
  const title =
    MEASURED === undefined ? 'have a cost that can be measured' : 'cost less than a sixtieth of a second of a processor four times slower'
  test(`of twelve processes ${title}`, async () => {
    const root = await serve()
    const browser = await launch()
    try {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
      await page.goto(`${root}?scene=limit&nodes=12&load=20&limit=500&rtt=20`)
      await page.locator('[data-digest]').waitFor({ timeout: 60_000 })
      const cost = await costOf(browser, page, SLOWER, SECONDS)
      console.log(JSON.stringify(cost))
      expect(cost.perSecond).toBeGreaterThan(0)
      expect(cost.scripts).toBeGreaterThan(0)
      expect(cost.median).toBeGreaterThan(0)
      if (MEASURED === undefined) return
      expect(cost.scripts).toBeLessThan(ONE / 2)
      expect(cost.median).toBeLessThan(ONE)
    } finally {
      await browser.close()
      unserve()
    }
  })
})
