import type { Server } from 'node:http'
import {
  createThrottler,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  type Throttler,
  tokenBucket,
} from '@weir/core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type DashboardOptions, dashboard } from '../src/index.ts'
import { CHROMIUM, complaints, launch, MISSING } from './browser.ts'
import { serve, throttlerFor } from './servers.ts'

describe.skipIf(CHROMIUM === undefined)(
  `the page in a real browser${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
  { timeout: 60_000 },
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launch()
    }, 60_000)
    afterAll(() => browser.close())

    function open(options: DashboardOptions = { authorize: () => true, actions: true }, path = '/deep/mount/weir') {
      return show(throttlerFor(), options, path)
    }

    async function show(throttler: Throttler, options: DashboardOptions = { authorize: 'none' }, path = '/weir') {
      const handler = dashboard(throttler, options)
      onTestFinished(() => handler.close())
      const { url, port, server } = await serve(handler)
      const page = await browser.newPage()
      onTestFinished(() => page.close())
      const heard = complaints(page)
      await page.goto(url + path)
      await page.getByRole('heading', { name: 'Limits' }).waitFor()
      return { throttler, handler, page, heard, port, server }
    }

    test('loads under a mount path, without a complaint of the browser', async () => {
      const { page, heard, throttler } = await open()
      for (let i = 0; i < 30; i++) throttler.check('alice')
      await page.getByRole('row', { name: /alice/ }).first().waitFor()
      expect(await page.getByRole('banner').getByRole('status').textContent()).toBe('Synced')
      expect(new URL(page.url()).pathname).toBe('/deep/mount/weir/')
      expect(heard).toEqual([])
    })

    test('shows a block within two seconds', async () => {
      const { page, throttler } = await open()
      const began = Date.now()
      throttler.block('mallory', '1h')
      await page
        .getByRole('region', { name: /^Blocked/ })
        .getByRole('rowheader', { name: /mallory/ })
        .first()
        .waitFor()
      expect(Date.now() - began).toBeLessThan(2_000)
    })

    test('unblocks by a click', async () => {
      const { page, throttler, heard } = await open()
      throttler.block('mallory', '1h', { policy: 'user' })
      await page.getByRole('button', { name: 'Unblock mallory in user' }).click()
      await expect.poll(() => throttler.peek('mallory').allowed).toBe(true)
      await page.getByText('Unblocked mallory.').waitFor()
      await page.getByText('No key is blocked.').waitFor()
      expect(heard).toEqual([])
    })

    test('resets a key by a click', async () => {
      const { page, throttler } = await open()
      for (let i = 0; i < 7; i++) throttler.check('needle')
      await page.getByRole('searchbox', { name: 'Find a key' }).fill('needle')
      await page.getByRole('button', { name: 'Reset needle in user' }).click()
      await page.getByText('Reset needle.').waitFor()
      expect(throttler.peek('needle').parts.map(({ limit, remaining }) => limit - remaining)).toContain(0)
      expect(throttler.peek('needle').parts.map(({ limit, remaining }) => limit - remaining)).toContain(7)
    })

    test('blocks by hand, with the keyboard alone', async () => {
      const { page, throttler } = await open()
      await page.getByLabel('Key', { exact: true }).focus()
      await page.keyboard.type('eve')
      await page.keyboard.press('Tab')
      await page.keyboard.type('user')
      await page.keyboard.press('Tab')
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Block')
      await page.keyboard.press('Enter')
      await expect.poll(() => throttler.peek('eve').allowed).toBe(false)
      await page.getByText('Blocked eve.').waitFor()
    })

    test('finds any key, also one that is in no list', async () => {
      const { page, throttler } = await open()
      for (let i = 0; i < 7; i++) throttler.check('needle')
      await page.getByRole('searchbox', { name: 'Find a key' }).fill('needle')
      await page.getByText('would be admitted').first().waitFor()
      await page.getByText('7 of 100').first().waitFor()
    })

    test('says what each limit means, and how much a key has used of what it may take', async () => {
      const limit = { limit: 60, interval: '1h', coordination: 'local' } as const
      const ROWS = [
        { says: /^fixed60 per h$/, used: '3 of 60', policy: { name: 'fixed' } },
        {
          says: /fixed window first request$/,
          used: '3 of 60',
          policy: { name: 'first', algorithm: fixedWindow({ start: 'first-request' }) },
        },
        { says: /, sliding window$/, used: '3 of 60', policy: { name: 'window', algorithm: slidingWindow() } },
        { says: /, sliding counter$/, used: '3 of 60', policy: { name: 'counter', algorithm: slidingCounter() } },
        { says: /, sliding log$/, used: '3 of 60', policy: { name: 'log', algorithm: slidingLog() } },
        { says: /, token bucket, 4 at once$/, used: '3 of 4', policy: { name: 'tokens', algorithm: tokenBucket({ burst: 4 }) } },
        {
          says: /, token bucket warm up, 100 at once$/,
          used: '9 of 100',
          policy: { name: 'warm', algorithm: tokenBucket({ burst: 100, warmUp: '10h' }) },
        },
        {
          says: /, leaky bucket, 5 at once$/,
          used: '3 of 5',
          policy: { name: 'leaky', algorithm: leakyBucket({ burst: 4, immediate: 4 }) },
        },
      ]
      const throttler = createThrottler({ policies: ROWS.map(({ policy }) => ({ ...limit, ...policy })) })
      onTestFinished(() => throttler.close())
      const { page, heard } = await show(throttler)
      throttler.check('needle', 3)
      await page.getByRole('searchbox', { name: 'Find a key' }).fill('needle')
      for (const { says, used, policy } of ROWS) {
        const row = page
          .getByRole('region', { name: 'Limits' })
          .getByRole('row')
          .filter({ hasText: 'needle' })
          .filter({ hasText: policy.name })
        await row.first().waitFor()
        const rules = await page.getByRole('region', { name: 'Limits' }).getByRole('rowheader').allTextContents()
        expect(
          rules.some((text) => text.startsWith(policy.name) && says.test(text)),
          `${policy.name} in ${rules.join('; ')}`,
        ).toBe(true)
        await row.getByText(used).first().waitFor()
        await page.getByRole('listitem').filter({ hasText: policy.name }).filter({ hasText: used }).first().waitFor()
      }
      expect(heard).toEqual([])
    })

    test('a key is text, whatever it holds', async () => {
      const { page, throttler, heard } = await open()
      const evil = '<img src=x onerror="document.title=1"><script>1</script>'
      throttler.check(evil)
      throttler.block(evil, '1h')
      await page.getByText(evil).first().waitFor()
      expect(await page.title()).toBe('Weir')
      expect(heard).toEqual([])
    })

    test('without actions there is nothing to click', async () => {
      const { page, throttler } = await open({ authorize: 'none' })
      throttler.block('mallory', '1h')
      await page
        .getByRole('rowheader', { name: /mallory/ })
        .first()
        .waitFor()
      expect(await page.getByRole('button').count()).toBe(0)
      expect(await page.getByRole('form').count()).toBe(0)
    })

    test('survives a restart of the server', async () => {
      const { page, handler, port, server } = await open()
      handler.close()
      await stop(server)
      await page.getByText('This page has lost its server.').waitFor()
      const again = throttlerFor()
      again.block('after the restart', '1h')
      const next = dashboard(again, { authorize: 'none' })
      onTestFinished(() => next.close())
      await serve(next, port)
      await page
        .getByRole('rowheader', { name: /after the restart/ })
        .first()
        .waitFor()
      expect(await page.getByText('This page has lost its server.').count()).toBe(0)
    })

    test('fits a phone', async () => {
      const { page, throttler } = await open()
      for (let i = 0; i < 30; i++) throttler.check(`a-rather-long-key-without-any-space-in-it-${'x'.repeat(200)}`)
      throttler.block(`another-${'y'.repeat(200)}`, '1h')
      await page.setViewportSize({ width: 360, height: 740 })
      await page
        .getByRole('rowheader', { name: /another-/ })
        .first()
        .waitFor()
      expect(await width(page)).toBeLessThanOrEqual(360)
    })

    test('every control has a name, every region a heading', async () => {
      const { page } = await open()
      const nameless = await page.evaluate(
        `[...document.querySelectorAll('input, select, button')].filter((one) => !one.labels?.length && !one.getAttribute('aria-label') && !one.textContent).length`,
      )
      expect(nameless).toBe(0)
      expect(await page.getByRole('main').count()).toBe(1)
      for (const name of ['Limits', 'Keys', 'Nodes', 'What happened']) expect(await page.getByRole('region', { name }).count()).toBe(1)
      for (const table of await page.getByRole('table').all()) expect(await table.getByRole('columnheader').count()).toBeGreaterThan(0)
    })
  },
)

function width(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth')
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
