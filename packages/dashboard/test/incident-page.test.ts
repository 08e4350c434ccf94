import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { CHROMIUM, complaints, launch, MISSING } from '@weir/tooling/browser'
import type { AxeResults } from 'axe-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { View } from '../src/protocol.ts'
import { canned, policyOf, viewOf } from './canned.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Counts bars that are wider than their cell. */
const OUTSIDE = `[...document.querySelectorAll('td .usage')].filter((one) => one.getBoundingClientRect().right > one.closest('td').getBoundingClientRect().right + 1).length`
const PAGES = ['#', '#policy=per-user', '#process=n1', '#key=user-1', '#mode=candidate']

describe.skipIf(CHROMIUM === undefined)(
  `the page during an incident, in a real browser${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
  { timeout: 60_000 },
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launch()
    }, 60_000)
    afterAll(() => browser.close())

    async function open(
      view: View,
      {
        answers = {},
        hash = '',
        scheme = 'light' as 'light' | 'dark',
        timezoneId = 'Asia/Kolkata',
      }: Partial<Record<'hash' | 'timezoneId', string>> & {
        answers?: Record<string, unknown>
        scheme?: 'light' | 'dark'
      } = {},
    ) {
      const server = await canned(view, answers)
      const context = await browser.newContext({ colorScheme: scheme, timezoneId, viewport: { width: 1440, height: 900 } })
      onTestFinished(() => context.close())
      const page = await context.newPage()
      const heard = complaints(page)
      await page.goto(server.url + hash)
      await page.getByRole('main').locator('section').first().waitFor()
      return { ...server, page, heard }
    }

    test('lists the limited keys first, with their times and rejections', async () => {
      const { page, heard } = await open(viewOf(3))
      expect(
        await page.getByRole('heading', { level: 2 }).evaluateAll((all) => all.map((one) => (one as { id?: string }).id).find(Boolean)),
      ).toBe('limited')
      const row = page.getByRole('region', { name: /^Limited now/ }).getByRole('row', { name: /^mallory in per-user/ })
      expect(await row.getByRole('cell').allTextContents()).toEqual([
        'At its limit',
        '31',
        '220',
        expect.stringMatching(/^\d\d:\d\d:\d\d$/),
        expect.stringMatching(/^\d\d:\d\d:\d\d$/),
        '',
      ])
      expect(await row.getByRole('img').getAttribute('aria-label')).toBe('At most 6 rejections in 5 s during the last 5 minutes')
      await page.getByText('Times in Asia/Calcutta (UTC+5:30)').waitFor()
      expect(heard).toEqual([])
    })

    test('filters limited keys, events and blocked keys, and keeps the filter in the address', async () => {
      const { page } = await open(viewOf(3))
      const texts = (): Promise<string[]> =>
        Promise.all(['limited', 'log', 'blocked'].map(async (id) => (await page.locator(`[aria-labelledby=${id}]`).textContent()) ?? ''))
      const [limited, log, blocked] = await texts()
      expect([limited, log, blocked].join()).not.toMatch(/in trial|in next/)
      expect([limited, log, blocked].map((text) => /in per-user/.test(text ?? ''))).toEqual([true, true, true])
      expect(log).toContain('The store is down')
      await page.getByRole('button', { name: 'Dry run' }).click()
      expect((await texts()).map((text) => [/in trial/.test(text), /in per-user/.test(text)])).toEqual(Array(3).fill([true, false]))
      await page.getByRole('button', { name: 'Candidate' }).click()
      const impact = page.getByRole('region', { name: 'Impact' }).getByRole('row', { name: /^per-user/ })
      expect(await impact.getByRole('cell').allTextContents()).toEqual(['250 of 1,000', '25 %', '+50 (+25 %)'])
      await page.getByRole('button', { name: '5 min', exact: true }).click()
      await page.getByRole('searchbox').fill('mal')
      expect(new URL(page.url()).hash).toBe('#mode=candidate&range=5&find=mal')
      await page.reload()
      await page.getByRole('region', { name: 'Impact' }).waitFor()
      expect(await page.getByRole('searchbox').inputValue()).toBe('mal')
      expect(await page.getByRole('button', { name: '5 min', exact: true }).getAttribute('aria-pressed')).toBe('true')
    })

    test('shows the state in the title', async () => {
      const { page, show } = await open(viewOf(3))
      await expect.poll(() => page.title()).toBe('Synced · Weir')
      show(viewOf(3, { state: 'storeDown', storeDownMs: 4_000 }))
      await expect.poll(() => page.title()).toBe('Without the store · Weir')
      await page.getByRole('link', { name: 'mallory in per-user' }).first().click()
      await expect.poll(() => page.title()).toBe('mallory in per-user · Without the store · Weir')
    })

    test('shows how many processes have reported, both overshoots, and failures of the last hour', async () => {
      const { page } = await open(viewOf(3, { reported: 1 }))
      const texts = await page.locator('.figure').allTextContents()
      expect(texts.slice(0, 3)).toEqual([
        'Live processes1 of 3 have reported',
        expect.stringContaining('3 failed last hour, 113 in total'),
        expect.stringContaining('requests / s, 1 of 3 processes'),
      ])
      expect(texts.at(-1)).toBe('Overshoot5.0 % last hour · 2.0 % possible now')
    })

    test('shows units beyond a bucket as debt, and units beyond a window as over limit', async () => {
      const policies = [policyOf('bucket', 'enforced', { algorithm: 'token-bucket', capacity: 20 }), policyOf('window', 'enforced')]
      const top = [
        { policy: 'bucket', key: 'alice', used: 20, limit: 20, debt: 31 },
        { policy: 'window', key: 'bob', used: 63, limit: 60, debt: 0 },
        { policy: 'window', key: 'carol', used: 5, limit: Number.POSITIVE_INFINITY, debt: 0 },
      ]
      const { page } = await open(viewOf(3, { policies, top, limited: [], blocked: [] }))
      const used = page.getByRole('region', { name: /^Most used/ })
      expect(await used.getByRole('cell').allTextContents()).toEqual([
        '20 of 20 debt 31100 %',
        '60 of 60 3 over limit100 %',
        '5 of no limit0 %',
      ])
    })

    test('shows open reservations of policies that have some, in the row and on the page of the policy', async () => {
      const reservations = { open: 3, units: 2_700 }
      const { page } = await open(
        viewOf(3, { policies: [policyOf('tokens', 'enforced', { reservations }), policyOf('other', 'enforced')] }),
      )
      const rows = page.getByRole('region', { name: 'Limits' }).getByRole('row')
      await rows.filter({ hasText: 'tokens' }).getByText('3 open reservations, 2,700 units reserved', { exact: true }).waitFor()
      expect(await rows.filter({ hasText: /reserv/ }).count()).toBe(1)
      await page.getByRole('link', { name: 'tokens' }).first().click()
      const facts = page.locator('.facts')
      await facts.getByText('3 open reservations, 2,700 units reserved', { exact: true }).waitFor()
      await page.getByRole('link', { name: 'Overview' }).first().click()
      await page.getByRole('link', { name: 'other' }).first().click()
      await page.getByRole('heading', { name: /^other/ }).waitFor()
      expect(await facts.textContent()).not.toContain('eserv')
    })

    test('draws an outage as a band, and leaves out unknown values', async () => {
      const { page } = await open(viewOf(3))
      const chart = page.getByRole('img', { name: /^Syncs/ })
      expect(await chart.getAttribute('aria-label')).toContain('Shaded: the store was down.')
      // The line's colour is in the known parts only.
      await expect
        .poll(() =>
          page.evaluate(`(() => {
            const canvas = document.querySelectorAll('.chart canvas')[1]
            const { width, height } = canvas
            const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
            const columns = new Set()
            for (let i = 0; i < data.length; i += 4) {
              if (data[i] === 10 && data[i + 1] === 110 && data[i + 2] === 168 && data[i + 3] === 255) columns.add((i / 4) % width)
            }
            const all = [...columns].sort((a, b) => a - b)
            return Math.max(...all.slice(1).map((x, i) => x - all[i])) / width
          })()`),
        )
        .toBeGreaterThan(0.15)
    })

    test('sends a reason, and undoes an action with its own request', async () => {
      const undo = { action: 'undo', key: 'eve', id: '7' }
      const { page, sent } = await open(viewOf(3), { answers: { block: { done: true, undo } } })
      await page.getByLabel('Reason, for the audit log').fill('ticket 12')
      await page.getByLabel('Key', { exact: true }).fill('eve')
      await page.getByRole('button', { name: 'Block', exact: true }).click()
      await page.getByText('Blocked eve.').waitFor()
      await page.getByRole('button', { name: 'Undo' }).click()
      await page.getByText('Undone for eve.').waitFor()
      expect(sent.filter(({ action }) => ['block', 'undo'].includes(action))).toEqual([
        { action: 'block', body: { key: 'eve', duration: 600_000, reason: 'ticket 12' } },
        { action: 'undo', body: { key: 'eve', id: '7' } },
      ])
      expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0)
    })

    test('removes the button to undo after 10 s', async () => {
      const undo = { action: 'undo', key: 'eve', id: '7' }
      const { page } = await open(viewOf(3), { answers: { block: { done: true, undo } } })
      await page.clock.install()
      await page.getByLabel('Key', { exact: true }).fill('eve')
      await page.getByRole('button', { name: 'Block', exact: true }).click()
      await page.getByRole('button', { name: 'Undo' }).waitFor()
      await page.clock.runFor(10_001)
      await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' })
    })

    test('lists audit entries, and their text is never markup', async () => {
      const entries = [{ time: Date.now(), by: 'bob@host', action: 'block', policy: 'per-user', key: '<b>eve', reason: '<i>ticket\u202e' }]
      const { page } = await open(viewOf(3), { answers: { audit: { entries } } })
      const row = page.getByRole('region', { name: 'Audit log' }).getByRole('row', { name: /^block <b>eve ?per-user/ })
      await row.waitFor()
      expect((await row.getByRole('cell').allTextContents()).slice(1)).toEqual(['bob@host', '<i>ticket\\u{202e}'])
    })

    test('compares another limit with the busiest keys', async () => {
      const { page } = await open(viewOf(3))
      await page.getByRole('region', { name: 'Limits' }).getByRole('link', { name: 'per-user', exact: true }).click()
      const panel = page.getByRole('region', { name: 'Try another limit' })
      const facts = (await page.getByRole('region', { name: 'per-user Enforced' }).textContent()) ?? ''
      for (const fact of ['Key ip', 'Cooldown 30\u00a0s', 'Coordination background']) expect(facts).toContain(fact)
      await panel.getByText('At 60: 3 of 14 keys reached the limit.').waitFor()
      await panel.getByRole('slider').fill('90')
      await panel.getByText('At 90: 3 of 14 keys would be limited less.').waitFor()
      await panel.getByRole('slider').fill('45')
      await panel.getByText('At 45: 5 of 14 keys would be limited more.').waitFor()
      expect(new URL(page.url()).hash).toBe('#policy=per-user')
    })

    test('finds keys that contain a text, and shows no card for a key that does not exist', async () => {
      const matches = [{ policy: 'per-user', key: 'mallory', used: 12, limit: 60, debt: 0 }]
      const found = { parts: [], key: 'mal', events: [], note: '', blocked: [], matches }
      const { page } = await open(viewOf(3), { answers: { find: found } })
      await page.getByRole('searchbox').fill('mal')
      const list = page.getByRole('region', { name: /^Found/ })
      await list.getByText('12 of 60').waitFor()
      expect(await list.getByRole('rowheader').allTextContents()).toEqual(['malloryper-user'])
      expect(await page.locator('.answer').count()).toBe(0)
    })

    test('a process has its own page, with its events', async () => {
      const { page, sent } = await open(viewOf(3))
      await page.getByRole('link', { name: 'gateway-1' }).click()
      await page.getByRole('heading', { name: /^gateway-1/ }).waitFor()
      const events = page.getByRole('region', { name: 'Events' })
      await events.getByText('mallory in per-user for 42 s').waitFor()
      expect(await events.getByText('The store is down').count()).toBe(0)
      await expect.poll(() => sent.filter(({ action }) => action === 'series').map(({ body }) => body['node'])).toContain('n1')
      await page.goBack()
      await page.getByRole('heading', { name: /^Limited now/ }).waitFor()
    })

    test.each([
      [3, 'light'],
      [3, 'dark'],
      [20, 'light'],
      [20, 'dark'],
    ] as const)('fits 360, 700, 1024 and 1440 px, and axe finds nothing: %i processes, %s', async (processes, scheme) => {
      const { page } = await open(viewOf(processes, { state: 'storeDown', storeDownMs: 4_000, log: [] }), { scheme })
      for (const hash of processes === 3 ? PAGES : ['#']) {
        await page.goto(new URL(hash, page.url()).href)
        for (const width of [1440, 1024, 811, 700, 360]) {
          await page.setViewportSize({ width, height: 900 })
          expect([hash, await widthOf(page), await page.evaluate(OUTSIDE)]).toEqual([hash, width, 0])
        }
        // One axe run per page, at the width with the most cards.
        await page.evaluate(AXE)
        expect(await problems(page), hash).toEqual([])
      }
    })

    test('on a phone, health comes first', async () => {
      const { page } = await open(viewOf(3))
      await page.setViewportSize({ width: 360, height: 740 })
      const order = await page
        .locator('.state, .figure h2')
        .evaluateAll((all) =>
          (all as unknown as { textContent: string; getBoundingClientRect(): { top: number; bottom: number } }[]).map((one) => [
            one.textContent,
            one.getBoundingClientRect().bottom < 740,
          ]),
        )
      expect(order.slice(0, 3)).toEqual([
        ['Synced', true],
        ['Live processes', true],
        ['Sync', true],
      ])
    })
  },
)

function widthOf(page: Page): Promise<number> {
  return page.evaluate('Math.max(document.documentElement.scrollWidth, innerWidth)')
}

async function problems(page: Page): Promise<string[]> {
  const { violations } = (await page.evaluate('axe.run()')) as AxeResults
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map(({ html, any }) => `${html} ${any[0]?.message}`)
        .join(' ')}`,
  )
}
