import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createThrottler, memoryStore, systemClock, type Throttler, tokenBucket } from '@weir/core'
import { Hub } from '@weir/core/memory'
import { type FollowOptions, follow } from '@weir/core/rules'
import { CHROMIUM, complaints, launch, MISSING } from '@weir/tooling/browser'
import type { AxeResults } from 'axe-core'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { dashboard } from '../src/index.ts'
import { MemorySource } from './rules-source.ts'
import { serve } from './servers.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const limit = { name: 'customer', key: 'ip', limit: 10, interval: '1h' } as const
/** Names of policies are printable ASCII. Keys and descriptions of changes may be any text. */
const MARKUP = '<img src=x onerror="document.title=1">'
const HOSTILE = `${MARKUP}\u202egnp`
const SHOWN = `${MARKUP}\\u{202e}gnp`

describe.skipIf(CHROMIUM === undefined)(
  `the page of rules in a real browser${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
  { timeout: 60_000 },
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launch()
    }, 60_000)
    afterAll(() => browser.close())

    /** Two processes that follow one source. The second one lacks an algorithm. */
    async function open(source: MemorySource, { width = 1440, colorScheme = 'light' as 'light' | 'dark' } = {}) {
      const hub = new Hub(systemClock)
      const node = async (options: FollowOptions): Promise<Throttler> => {
        const throttler = createThrottler({ policies: [limit], store: memoryStore(hub), heartbeat: 100 }) as Throttler
        throttler.on('warning', () => {})
        const rules = follow(throttler, source, options)
        onTestFinished(() => throttler.close())
        onTestFinished(() => rules.close())
        await rules.ready
        expect(rules.status.rejected).toBe(undefined)
        return throttler.start()
      }
      const [throttler, other] = [await node({ algorithms: { tokenBucket } }), await node({})]
      const handler = dashboard(throttler, { authorize: () => true, actions: true })
      onTestFinished(() => handler.close())
      const { url } = await serve(handler)
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme, reducedMotion: 'reduce' })
      onTestFinished(() => page.close())
      const heard = complaints(page)
      await page.goto(`${url}/`)
      await page.getByRole('link', { name: 'Rules', exact: true }).click()
      await page.getByRole('heading', { name: 'Current policies' }).waitFor()
      return { page, heard, throttler, other }
    }

    function full(): MemorySource {
      const source = new MemorySource()
      source.put({ version: 6, change: { by: 'bob' }, policies: [limit] })
      const overrides = Array.from({ length: 120 }, (_, i) => ({ policy: 'customer', key: `tenant ${i}`, limit: i + 1 }))
      overrides.push({ policy: 'customer', key: HOSTILE, limit: 7, until: '2999-01-01T00:00:00Z' } as (typeof overrides)[0])
      source.put({
        version: 7,
        change: { at: '2026-11-23T22:00:00Z', by: HOSTILE, why: `${HOSTILE} ${'very'.repeat(200)}` },
        policies: [
          { ...limit, limit: 12, match: ['POST /login'] },
          { ...limit, name: MARKUP, limit: 900 },
        ],
        overrides,
        next: { policies: [{ ...limit, limit: 3 }] },
      })
      return source
    }

    test('shows versions, the version of each process, policies, and the impact of candidates', async () => {
      const source = full()
      const { page, heard, throttler, other } = await open(source)
      const versions = page.getByRole('region', { name: 'Versions' })
      await versions.getByRole('row', { name: /^7 ?current/ }).waitFor()
      const seven = versions.getByRole('row', { name: /^7 ?current/ })
      await seven.getByText(SHOWN, { exact: true }).waitFor()
      expect(await versions.getByRole('row', { name: /^6/ }).textContent()).toContain('bob')
      const policies = page.getByRole('region', { name: 'Current policies' })
      expect(await policies.getByRole('row', { name: /^customer/ }).textContent()).toContain('POST /login')
      await policies.getByRole('rowheader', { name: MARKUP }).waitFor()
      // Both processes judge, and the page adds up their reports.
      for (const node of [throttler, other]) for (let i = 0; i < 6; i++) node.check(HOSTILE)
      const judged = page.getByRole('region', { name: 'Impact' })
      const row = judged.getByRole('row').filter({ has: page.getByRole('rowheader', { name: SHOWN }) })
      await expect.poll(async () => Number(await row.getByRole('cell').textContent())).toBeGreaterThanOrEqual(6)
      await judged.getByRole('rowheader', { name: 'customer', exact: true }).waitFor()
      // Version 8 needs an algorithm that one process does not have.
      source.put({ version: 8, policies: [{ ...limit, algorithm: 'tokenBucket' }] })
      const runs = page.getByRole('region', { name: 'Versions by process' })
      await runs.getByText(/rejected version 8: policies\[0\]\.algorithm \(line 1, column \d+\)/).waitFor()
      await runs
        .getByRole('row', { name: /this one/ })
        .getByText(/^8 \(/)
        .waitFor()
      await versions.getByRole('row', { name: /^8 ?current/ }).waitFor()
      await expect.poll(() => versions.getByRole('row', { name: /^7/ }).getByRole('cell').last().textContent()).toBe('1')
      await page.getByText('No key has a limit of its own.').waitFor()
      expect(await judged.count()).toBe(0)
      expect(await page.title()).toBe('Rules · Synced · Weir')
      // The page is read-only. Its only buttons turn pages.
      expect(await page.getByRole('button').count()).toBe(0)
      expect(await page.getByRole('form').count()).toBe(0)
      expect(heard).toEqual([])
    })

    test('pages and searches limits of single keys, with the keyboard too', async () => {
      const { page, heard } = await open(full())
      const overrides = page.getByRole('region', { name: 'Limits of single keys' })
      await overrides.getByText('1 to 25 of 121').waitFor()
      await overrides.getByRole('button', { name: 'Further' }).focus()
      await page.keyboard.press('Enter')
      await overrides.getByText('26 to 50 of 121').waitFor()
      await overrides.getByRole('button', { name: 'Further' }).click()
      await overrides.getByText('51 to 75 of 121').waitFor()
      for (const rows of ['76 to 100', '101 to 121']) {
        await overrides.getByRole('button', { name: 'Further' }).click()
        await overrides.getByText(`${rows} of 121`).waitFor()
      }
      expect(await overrides.getByRole('button', { name: 'Further' }).isDisabled()).toBe(true)
      await overrides.getByRole('button', { name: 'Back' }).click()
      await overrides.getByText('76 to 100 of 121').waitFor()
      await overrides.getByRole('searchbox').fill('img src')
      await overrides.getByText('1 to 1 of 1').waitFor()
      expect(await overrides.getByRole('row').last().textContent()).toMatch(/2999/)
      await overrides.getByRole('link', { name: SHOWN }).click()
      await page.getByRole('heading', { name: SHOWN }).waitFor()
      await page.goBack()
      await overrides.getByRole('searchbox').fill('absent')
      await overrides.getByText('No limit of a key contains this.').waitFor()
      await overrides.getByRole('searchbox').fill('')
      await overrides.getByText('1 to 25 of 121').waitFor()
      expect(heard).toEqual([])
    })

    test.each([390, 768, 1440].flatMap((width) => (['light', 'dark'] as const).map((colorScheme) => [width, colorScheme] as const)))(
      'fits %i px, and axe finds nothing: %s',
      async (width, colorScheme) => {
        const { page, throttler } = await open(full(), { width, colorScheme })
        for (let i = 0; i < 9; i++) throttler.check(`a-rather-long-key-without-any-space-${'x'.repeat(200)}`)
        await page.getByRole('rowheader', { name: /a-rather-long-key/ }).waitFor()
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
        await page.evaluate(AXE)
        const { violations } = (await page.evaluate('axe.run()')) as AxeResults
        expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)).toEqual([])
      },
    )
  },
)
