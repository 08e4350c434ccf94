import type { Server } from 'node:http'
import {
  concurrency,
  createThrottler,
  fixedWindow,
  leakyBucket,
  memoryStore,
  slidingCounter,
  slidingLog,
  slidingWindow,
  systemClock,
  type Throttler,
  tokenBucket,
} from '@weir/core'
import { Hub } from '@weir/core/memory'
import { CHROMIUM, complaints, launch, MISSING } from '@weir/tooling/browser'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type DashboardOptions, dashboard } from '../src/index.ts'
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

    test('shows a block that is made while it is open', async () => {
      const { page, throttler } = await open()
      throttler.block('mallory', '1h')
      await page
        .getByRole('region', { name: /^Blocked/ })
        .getByRole('rowheader', { name: /mallory/ })
        .first()
        .waitFor()
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

    test('undoes a block with the server, and the audit log lists both', async () => {
      const { page, throttler, heard } = await open()
      await page.getByLabel('Reason, for the audit log').fill('ticket 12')
      await page.getByLabel('Key', { exact: true }).fill('eve')
      await page.getByRole('button', { name: 'Block', exact: true }).click()
      await expect.poll(() => throttler.peek('eve').allowed).toBe(false)
      await page.getByRole('button', { name: 'Undo' }).click()
      await expect.poll(() => throttler.peek('eve').allowed).toBe(true)
      const audit = page.getByRole('region', { name: 'Audit log' })
      await audit.getByText('ticket 12').first().waitFor()
      await audit.getByRole('row', { name: /^undo|^unblock/ }).waitFor()
      expect(heard).toEqual([])
    })

    test('resets a key by a click', async () => {
      const { page, throttler } = await open()
      for (let i = 0; i < 7; i++) throttler.check('needle')
      await page.getByRole('searchbox', { name: 'Find a key' }).fill('needle')
      await page.getByRole('button', { name: 'Reset needle in user' }).click()
      await page.getByText('Counters of needle reset.').waitFor()
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
      await page.getByText('would be allowed').first().waitFor()
      await page.getByText('7 of 100').first().waitFor()
    })

    test.each(['local', 'central'] as const)(
      'says what each limit means, and how much a key has used of what it may take: %s',
      async (coordination) => {
        // The code of central decisions is loaded at the first request, which takes time on a busy machine.
        const limit = {
          limit: 60,
          interval: '1h',
          coordination,
          ...(coordination === 'central' && { storeTimeout: '30s' as const }),
        } as const
        const ROWS = [
          { says: /^fixed60 per h(key|cooldown|coordination)/, used: '3 of 60', policy: { name: 'fixed' } },
          {
            says: /fixed window first request(key|cooldown|coordination)/,
            used: '3 of 60',
            policy: { name: 'first', algorithm: fixedWindow({ start: 'first-request' }) },
          },
          { says: /, sliding window(key|cooldown|coordination)/, used: '3 of 60', policy: { name: 'window', algorithm: slidingWindow() } },
          {
            says: /, sliding counter(key|cooldown|coordination)/,
            used: '3 of 60',
            policy: { name: 'counter', algorithm: slidingCounter() },
          },
          { says: /, sliding log(key|cooldown|coordination)/, used: '3 of 60', policy: { name: 'log', algorithm: slidingLog() } },
          {
            says: /, token bucket, 4 at once(key|cooldown|coordination)/,
            used: '3 of 4',
            policy: { name: 'tokens', algorithm: tokenBucket({ burst: 4 }) },
          },
          {
            says: /, token bucket warming up, 100 at once(key|cooldown|coordination)/,
            used: '9 of 100',
            policy: { name: 'warm', algorithm: tokenBucket({ burst: 100, warmUp: '10h' }) },
          },
          {
            says: /, leaky bucket, 5 at once(key|cooldown|coordination)/,
            used: '3 of 5',
            policy: { name: 'leaky', algorithm: leakyBucket({ burst: 4, immediate: 4 }) },
          },
        ]
        const throttler = createThrottler({
          policies: ROWS.map(({ policy }) => ({ ...limit, ...policy })),
          ...(coordination === 'central' && { store: memoryStore() }),
        }).start()
        onTestFinished(() => throttler.close())
        const { page, heard } = await show(throttler)
        expect((await throttler.checkAsync('needle', 3)).allowed).toBe(true)
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
            rules.some((text) => text.startsWith(policy.name) && says.test(text) && text.includes(`coordination ${coordination}`)),
            `${policy.name} in ${rules.join('; ')}`,
          ).toBe(true)
          await row.getByText(used).first().waitFor()
          await page.getByRole('listitem').filter({ hasText: policy.name }).filter({ hasText: used }).first().waitFor()
        }
        expect(heard).toEqual([])
      },
    )

    test('says how many wait, for how long and for which keys, and who holds how many slots', async () => {
      const throttler = createThrottler({
        policies: [
          { name: 'calls', limit: 2, interval: '1h', coordination: 'local' },
          { name: 'slots', limit: 8, algorithm: concurrency(), coordination: 'local' },
        ],
        queue: { maxWait: '2h' },
      })
      onTestFinished(() => throttler.close())
      const { page, heard } = await show(throttler)
      const controller = new AbortController()
      const gone = Array.from({ length: 5 }, () => throttler.acquire('api.example.com', { signal: controller.signal }).catch(() => {}))
      const limits = page.getByRole('region', { name: 'Limits' })
      const calls = limits.getByRole('row').filter({ hasText: 'calls' })
      await calls.getByText(/^3 wait, up to \d/).waitFor()
      await calls.getByText('api.example.com: 3').waitFor()
      const slots = limits.getByRole('row').filter({ hasText: 'slots' })
      await slots.getByText('2 in flight', { exact: true }).waitFor()
      await slots.getByText('2 of 8').waitFor()
      controller.abort()
      await Promise.all(gone)
      await calls.getByText(/wait, up to/).waitFor({ state: 'detached' })
      expect(heard).toEqual([])
    })

    test('a key is text, whatever it holds', async () => {
      const { page, throttler, heard } = await open()
      const evil = '<img src=x onerror="document.title=1"><script>1</script>'
      throttler.check(evil)
      throttler.block(evil, '1h')
      await page.getByText(evil).first().waitFor()
      expect(await page.title()).toBe('Synced · Weir')
      expect(heard).toEqual([])
    })

    test('without actions, no button changes anything', async () => {
      const { page, throttler } = await open({ authorize: 'none' })
      throttler.block('mallory', '1h')
      await page
        .getByRole('rowheader', { name: /mallory/ })
        .first()
        .waitFor()
      // Only the buttons of the filter and of the time range are there.
      expect(await page.getByRole('button').allTextContents()).toEqual(['Enforced', 'Dry run', 'Candidate', '5 min', '10 min', '30 min'])
      expect(await page.getByRole('form').count()).toBe(0)
    })

    test('survives a restart of the server', async () => {
      const { page, handler, port, server } = await open()
      handler.close()
      await stop(server)
      await page.getByText("This page can't reach its server.").waitFor()
      const again = throttlerFor()
      again.block('after the restart', '1h')
      const next = dashboard(again, { authorize: 'none' })
      onTestFinished(() => next.close())
      await serve(next, port)
      await page
        .getByRole('rowheader', { name: /after the restart/ })
        .first()
        .waitFor()
      expect(await page.getByText("This page can't reach its server.").count()).toBe(0)
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

    test('a phone shows every column, each figure with its name', async () => {
      const { page, throttler } = await open()
      for (let i = 0; i < 30; i++) throttler.check('alice')
      const columns = (): Promise<[string, boolean, number][]> =>
        page.evaluate(
          `[...document.querySelectorAll('[aria-labelledby="policies"] tbody tr:first-child td')].map((cell) => [
            getComputedStyle(cell, '::before').content, cell.checkVisibility(), cell.getBoundingClientRect().right])`,
        )
      await page.setViewportSize({ width: 1280, height: 900 })
      await page.getByRole('row', { name: /alice/ }).first().waitFor()
      const wide = await columns()
      expect(wide.length).toBe(8)
      await page.setViewportSize({ width: 390, height: 800 })
      const narrow = await columns()
      expect(narrow.map(([name]) => name.replaceAll('"', ''))).toEqual([
        'Most used key',
        'Units / s',
        'Rejections / s',
        'Keys',
        'At limit',
        'Blocked',
        'Unsynced',
        'Overshoot',
      ])
      for (const [, shown, right] of narrow) expect([shown, right <= 390]).toEqual([true, true])
      expect(await width(page)).toBeLessThanOrEqual(390)
    })

    test('a key has a page of its own, with what can be done about it', async () => {
      const { page, throttler, heard } = await open()
      const evil = '\u202egnp/<b>#key=&'
      for (let i = 0; i < 7; i++) throttler.check(evil)
      throttler.block(evil, '1h', { policy: 'user' })
      await page
        .getByRole('region', { name: /^Blocked/ })
        .getByRole('link', { name: '\\u{202e}gnp/<b>#key=&' })
        .click()
      await page.getByRole('heading', { name: '\\u{202e}gnp/<b>#key=&' }).waitFor()
      await page.getByText('blocked manually, ').waitFor()
      await page.getByRole('region', { name: 'Blocks' }).getByText('in user for 1 h, manually').waitFor()
      await page.getByRole('button', { name: 'Unblock in user' }).click()
      await expect.poll(() => throttler.peek(evil).allowed).toBe(true)
      await page.getByRole('button', { name: 'Reset in user' }).click()
      await expect.poll(() => throttler.peek(evil).parts.map(({ remaining }) => remaining)).toEqual([100, 993])
      await page.getByRole('form', { name: 'Block this key' }).getByLabel('Policy').selectOption('tenant')
      await page.getByRole('button', { name: 'Block', exact: true }).click()
      await expect.poll(() => throttler.peek(evil).parts.map(({ reason }) => reason)).toEqual(['ok', 'blocked'])
      await page.getByRole('form', { name: 'Note' }).getByRole('textbox').fill('<i>ours</i>')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.getByRole('link', { name: 'Overview' }).click()
      await page
        .getByRole('region', { name: /^Blocked/ })
        .getByText('<i>ours</i>')
        .waitFor()
      // The key's page has an address, so it survives a reload.
      await page.goBack()
      await page.reload()
      await page.getByRole('heading', { name: '\\u{202e}gnp/<b>#key=&' }).waitFor()
      expect(await page.getByRole('form', { name: 'Note' }).getByRole('textbox').inputValue()).toBe('<i>ours</i>')
      await page.setViewportSize({ width: 390, height: 800 })
      expect(await width(page)).toBeLessThanOrEqual(390)
      expect(heard).toEqual([])
    })

    test('the longest name of a policy fits on a phone', async () => {
      const name = 'a-policy-whose-name-is-as-long-as-any-may-be-'.padEnd(64, 'x')
      const throttler = createThrottler({
        policies: [{ name, key: ['route', { header: 'x-client' }], limit: 5, interval: '1h', cooldown: '30s', coordination: 'local' }],
      })
      onTestFinished(() => throttler.close())
      for (let i = 0; i < 7; i++) throttler.check('alice')
      const { page } = await show(throttler, { authorize: () => true, actions: true })
      await page.setViewportSize({ width: 390, height: 800 })
      await page.getByRole('row', { name: /alice/ }).first().waitFor()
      await page.getByText('key route, header x-client · cooldown 30 s · coordination local').waitFor()
      expect(await width(page)).toBeLessThanOrEqual(390)
      await page.getByRole('link', { name: 'alice' }).first().click()
      await page.getByRole('form', { name: 'Block this key' }).waitFor()
      expect(await width(page)).toBeLessThanOrEqual(390)
    })

    test('shows the reasons for rejections, and greys stale figures', async () => {
      const hub = new FailingHub(systemClock)
      const throttler = throttlerFor(hub)
      const { page } = await show(throttler)
      for (let i = 0; i < 150; i++) throttler.check('mallory')
      const reasons = page.getByRole('region', { name: 'Reasons for rejections' })
      await reasons.getByRole('row', { name: /Cooldown/ }).waitFor()
      const grey = () => page.locator('.stale').count()
      expect(await grey()).toBe(0)
      hub.away = true
      await page.getByText('The store has been down for').waitFor()
      expect(await page.locator('.figure.stale').allTextContents()).toEqual([
        expect.stringContaining('Live processes'),
        expect.stringContaining('Sync'),
        expect.stringContaining('Overshoot'),
      ])
      await page.getByText('Counts of other processes are from before the store went down.').waitFor()
      hub.away = false
      await expect.poll(grey).toBe(0)
    })

    test('shows keys of a dry run only if the filter is set to it', async () => {
      const throttler = createThrottler({
        policies: [{ name: 'dry', limit: 1, interval: '1h', cooldown: '1h', coordination: 'local', dryRun: true }],
      })
      onTestFinished(() => throttler.close())
      for (let i = 0; i < 5; i++) throttler.check('alice')
      const { page } = await show(throttler)
      await page.getByRole('heading', { name: 'Blocked 0' }).waitFor()
      await page.getByText('No key is limited.').waitFor()
      await page.getByRole('button', { name: 'Dry run' }).click()
      await page.getByText('dry, cooldown, not rejected because of the dry run').waitFor()
      await page.getByRole('heading', { name: 'Blocked 1' }).waitFor()
      await page.getByRole('heading', { name: /^Limited now 1/ }).waitFor()
      await page.getByText('1 would be').waitFor()
      await page.getByRole('searchbox', { name: 'Find a key' }).fill('alice')
      await page.getByText('allowed because of the dry run').waitFor()
    })

    test('every control has a name, every region a heading', async () => {
      const { page } = await open()
      const nameless = await page.evaluate(
        `[...document.querySelectorAll('input, select, button')].filter((one) => !one.labels?.length && !one.getAttribute('aria-label') && !one.textContent).length`,
      )
      expect(nameless).toBe(0)
      expect(await page.getByRole('main').count()).toBe(1)
      for (const name of ['Limits', 'Keys', 'Processes', 'Events']) expect(await page.getByRole('region', { name }).count()).toBe(1)
      for (const table of await page.getByRole('table').all()) expect(await table.getByRole('columnheader').count()).toBeGreaterThan(0)
    })
  },
)

/** A hub that can be down. */
class FailingHub extends Hub {
  away = false

  override exchange(...args: Parameters<Hub['exchange']>): ReturnType<Hub['exchange']> {
    if (this.away) throw new Error('away')
    return super.exchange(...args)
  }
}

function width(page: Page): Promise<number> {
  return page.evaluate('document.documentElement.scrollWidth')
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
