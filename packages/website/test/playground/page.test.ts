import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { run } from '../../src/playground/runs/run.ts'
import type { Control } from '../../src/playground/settings/control.ts'
import { SCENES, type SceneName } from '../../src/playground/settings/scenes.ts'
import { readAddress, settingsOf, writeAddress } from '../../src/playground/settings/settings.ts'
import { tablesOf } from '../../src/playground/tables/tables.ts'
import { written } from '../../src/playground/tables/write.ts'
import { CHROMIUM, complaints, launch, MISSING, seriousOf, serve, unserve } from './browser.ts'

/** Settings with very short runs. */
const QUICK = `&limit=20&interval=60&load=1.5&${new URLSearchParams({ options: "{ limit: 20, interval: '10s' }" })}`

describe.skipIf(CHROMIUM === undefined)(
  `the playground in a real browser${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
  { timeout: 120_000 },
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

    async function open(address: string, options: BrowserContextOptions = {}) {
      const page = await browser.newPage({ viewport: { width: 1000, height: 800 }, ...options })
      onTestFinished(() => page.close())
      const heard = complaints(page)
      await page.goto(root + address)
      await page.locator('[data-digest]').waitFor({ timeout: 60_000 })
      return { page, heard }
    }

    /** The fingerprint of a run, once the run is for these settings. */
    async function digestOf(page: Page, of: string): Promise<string | null> {
      const outcome = page.locator(`[data-of="${of}"]`)
      await outcome.waitFor({ timeout: 60_000 })
      return outcome.getAttribute('data-digest')
    }

    test.each([
      '?scene=limit&nodes=12&load=70&rtt=30&limit=80&balancing=zipf&seed=42',
      '?scene=outage&limit=50&load=90&fault=hang&seed=5',
      '?scene=straddle&limit=50&load=8&lead=0.3&seed=6',
      '?scene=stream&shape=random&limit=12&seed=7',
      '?scene=far&limit=60&load=6&far=3&seed=8',
      `?${new URLSearchParams({ scene: 'policy', options: "{ limit: 40, interval: '10s' }", seed: '9' })}`,
    ])('its numbers are those of the command: %s', async (address) => {
      const { page, heard } = await open(address)
      const settings = readAddress(address)
      const outcome = await run(settings)
      expect(await digestOf(page, writeAddress(settings))).toBe(outcome.digest)
      const tables = tablesOf(outcome)
      for (const { name, caption, columns, rows } of tables) {
        const table = page.getByRole('region', { name, exact: true }).locator('table')
        const cells = await table
          .locator('tr')
          .evaluateAll((lines) => lines.map((line) => Array.from(line.children, (cell) => cell.textContent)))
        expect(cells).toEqual(columns.length > 0 ? [columns, ...rows] : rows)
        if (caption !== undefined) expect(await table.locator('caption').textContent()).toBe(caption)
      }
      // The command's output contains each cell.
      const text = written(outcome)
      for (const cell of tables.flatMap(({ rows }) => rows.flat())) expect(text).toContain(cell)
      if (outcome.kind === 'policy') expect(text).toContain(await page.locator('blockquote').textContent())
      expect(heard).toEqual([])
    })

    test.each(SCENES.map(({ name }) => name))('reacts to each control, and updates its address: %s', async (scene) => {
      const { page, heard } = await open(`?scene=${scene}${QUICK}`)
      let settings = readAddress(`?scene=${scene}${QUICK}`)
      for (const control of SCENES.find(({ name }) => name === scene)?.controls ?? []) {
        const next = another(control, settings.values[control.name])
        settings = settingsOf(scene, { ...settings.values, [control.name]: next })
        const field = page.locator(`#set-${control.name}`)
        if (control.kind === 'choice') await field.selectOption(String(next))
        else if (control.kind === 'text') await field.fill(String(next))
        else {
          const exact = page.getByLabel(`${control.label}, as a number`, { exact: true })
          await exact.fill(String(next))
          await exact.press('Enter')
        }
        expect(await digestOf(page, writeAddress(settings))).toBe((await run(settings)).digest)
        expect(new URL(page.url()).search).toBe(writeAddress(settings))
      }
      expect(heard).toEqual([])
    })

    test.each(['limit', 'outage'] satisfies SceneName[])('moves while it plays, rests when it is paused, and steps: %s', async (scene) => {
      const { page } = await open(`?scene=${scene}${QUICK}`)
      const clock = page.locator('.clock')
      const picture = () =>
        page
          .locator('.lanes canvas')
          .last()
          .evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL())
      const first = await picture()
      await expect.poll(picture).not.toBe(first)
      await page.getByRole('button', { name: 'Pause' }).click()
      const time = await clock.textContent()
      const rests = await picture()
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
      expect(await picture()).toBe(rests)
      // Two messages may be closer than the precision of the text.
      const step = async () => {
        await page.getByRole('button', { name: 'Step' }).click()
        return clock.textContent()
      }
      await expect.poll(step).not.toBe(time)
    })

    test.each(['straddle', 'stream', 'far'] satisfies SceneName[])(
      'draws its curtain back while it plays, and all the way: %s',
      async (scene) => {
        const { page } = await open(`?scene=${scene}${QUICK}&nodes=2`)
        // The left edge of the curtain, as a part of the picture's width.
        const seen = () =>
          page
            .locator('.curtain')
            .first()
            .evaluate((curtain) => {
              const [own, around] = [curtain, curtain.parentElement as Element].map((element) => element.getBoundingClientRect())
              return ((own as DOMRect).left - (around as DOMRect).left) / (around as DOMRect).width
            })
        const first = await seen()
        await expect.poll(seen).toBeGreaterThan(first)
        await page.getByRole('button', { name: 'Pause' }).click()
        const rests = await seen()
        expect(rests).toBeLessThan(1)
        await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
        expect(await seen()).toBe(rests)
        await page.getByRole('button', { name: 'Step' }).click()
        expect(await seen()).toBeGreaterThan(rests)
        const moment = page.getByRole('slider', { name: 'Moment' })
        await moment.fill(String(Number(await moment.getAttribute('max')) - 1000))
        await page.getByRole('button', { name: 'Play' }).click()
        await expect.poll(seen).toBeGreaterThanOrEqual(1)
        await page.getByRole('button', { name: 'Play' }).waitFor()
      },
    )

    test('plays at the chosen speed', async () => {
      const { page } = await open(`?scene=limit${QUICK}`)
      const speed = page.getByRole('combobox', { name: 'Speed' })
      await speed.selectOption('30')
      const moment = async () => Number(await page.getByRole('slider', { name: 'Moment' }).inputValue())
      await expect.poll(moment).toBeGreaterThan(60_000)
      await page.getByRole('button', { name: 'Pause' }).click()
      const before = await moment()
      await speed.selectOption('0.01')
      await page.getByRole('button', { name: 'Play' }).click()
      await page.evaluate(`new Promise((resolve) => {
        let pictures = 0
        requestAnimationFrame(function next() {
          if (++pictures === 20) resolve()
          else requestAnimationFrame(next)
        })
      })`)
      await page.getByRole('button', { name: 'Pause' }).click()
      expect(await moment()).toBeGreaterThan(before)
      expect((await moment()) - before).toBeLessThan(1000)
    })

    test('answers for a pasted log without sending it anywhere, and copies a test', async () => {
      const { page, heard } = await open(`?scene=policy${QUICK}`, { permissions: ['clipboard-read', 'clipboard-write'] })
      const requests: string[] = []
      page.on('request', (request) => requests.push(request.url()))
      const line = '192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12'
      const log = page.locator('#set-log')
      await log.fill('nothing of the kind')
      await page.locator('.answer', { hasText: 'No request in 1 line.' }).waitFor()
      await log.fill(`${line}\n`.repeat(30))
      await page.locator('.answer', { hasText: 'Rejects 10 of 30 requests (33 %), from 1 of 1 client.' }).waitFor()
      await page.getByRole('row', { name: '192.0.2.7 30 10' }).waitFor()
      expect(requests).toEqual([])
      expect(page.url()).not.toContain('192.0.2.7')
      await page.getByRole('button', { name: 'Copy the test' }).click()
      await page.getByText('Copied.').waitFor()
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await page.getByRole('region', { name: 'The test' }).textContent())
      expect(heard).toEqual([])
    })

    test('plays and pauses with the keyboard alone', async () => {
      const { page } = await open(`?scene=limit${QUICK}`)
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      await page.keyboard.press('Space')
      await page.getByRole('button', { name: 'Play' }).waitFor()
      await page.keyboard.press('Space')
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      await page.locator('#set-nodes').focus()
      await page.keyboard.press('ArrowRight')
      await expect.poll(() => new URL(page.url()).searchParams.get('nodes')).toBe('6')
    })

    test('is paused at first with reduced motion', async () => {
      const { page } = await open(`?scene=limit${QUICK}`, { reducedMotion: 'reduce' })
      await page.getByRole('button', { name: 'Play' }).waitFor()
      expect(await page.locator('.clock').textContent()).toMatch(/^0 ms/)
    })

    test('shows a whole chart immediately with reduced motion', async () => {
      const { page } = await open(`?scene=straddle${QUICK}`, { reducedMotion: 'reduce' })
      await page.getByRole('button', { name: 'Play' }).waitFor()
      expect(await page.locator('.clock').textContent()).toMatch(/^(\S+ s) of \1$/)
    })

    test('announces each result once, and nothing while it plays', async () => {
      const { page } = await open(`?scene=limit${QUICK}`)
      const said = page.locator('.outcome > [role=status]')
      await expect.poll(() => said.textContent()).toMatch(/requests: .* of the exact limit were allowed/)
      const before = await said.textContent()
      const changes = page.evaluate(`new Promise((resolve) => {
        let changes = 0
        const watched = new MutationObserver((found) => (changes += found.length))
        for (const live of document.querySelectorAll('[role=status], [role=alert], [aria-live], output')) watched.observe(live, { childList: true, characterData: true, subtree: true })
        setTimeout(() => resolve(changes), 1500)
      })`)
      expect(await changes).toBe(0)
      await page.getByLabel('Offered load, times the limit, as a number', { exact: true }).fill('20')
      await page.getByLabel('Offered load, times the limit, as a number', { exact: true }).press('Enter')
      await expect.poll(() => said.textContent()).not.toBe(before)
    })

    test('follows the colour scheme of the documentation immediately', async () => {
      const context = await browser.newContext({ colorScheme: 'light' })
      onTestFinished(() => context.close())
      const [page, other] = [await context.newPage(), await context.newPage()]
      await page.goto(`${root}?scene=stream${QUICK}`)
      await page.locator('[data-digest]').waitFor()
      const background = (of: Page) => of.evaluate('getComputedStyle(document.body).backgroundColor')
      const light = await background(page)
      await other.goto(`${root}guides/try-it.html`)
      await other.evaluate("localStorage.setItem('vitepress-theme-appearance', 'dark')")
      await expect.poll(() => background(page)).not.toBe(light)
      await page.reload()
      expect(await background(page)).not.toBe(light)
      await other.evaluate("localStorage.setItem('vitepress-theme-appearance', 'auto')")
      await expect.poll(() => background(page)).toBe(light)
      await page.emulateMedia({ colorScheme: 'dark' })
      await expect.poll(() => background(page)).not.toBe(light)
    })

    test('a fault begins at the shown moment, and the film continues', async () => {
      const { page } = await open('?scene=outage&fault=none&load=5&limit=50&nodes=3')
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByRole('slider', { name: 'Moment' }).fill('17000')
      await page.getByRole('button', { name: 'Kill Redis', exact: true }).click()
      await expect.poll(() => new URL(page.url()).searchParams.get('from')).toBe('1.7')
      await digestOf(page, new URL(page.url()).search)
      expect(await page.locator('.clock').textContent()).toMatch(/^17/)
      await page.getByRole('slider', { name: 'Moment' }).fill('19000')
      await page.getByText('This moment as a table').click()
      await page.getByRole('rowheader', { name: 'without the store' }).first().waitFor()
    })

    test.each([
      ['a scene and a number out of range', '?scene=constructor&nodes=-1e308'],
      ['times in the wrong order', '?scene=outage&from=99&until=-1&failMode=%00&fault=__proto__'],
      ['broken escapes, no numbers', '?%E0%A4%A&scene=limit&seed=NaN&load=1e-9'],
      ['a long value', `?scene=limit&balancing=${'x'.repeat(5000)}`],
    ])('survives nonsense in the address: %s', async (_, address) => {
      const { page, heard } = await open(`${address}${QUICK}`)
      expect(await digestOf(page, new URL(page.url()).search)).toMatch(/^[0-9a-f]{16}$/)
      expect(heard).toEqual([])
    })

    // All scenes have the same colours, so one scene is enough for the dark scheme.
    test.each([...SCENES.map(({ name }) => [name, 'light'] as const), ['limit', 'dark'] as const])(
      'axe finds nothing serious: %s, %s',
      async (scene, colorScheme) => {
        const { page } = await open(`?scene=${scene}${QUICK}`, { colorScheme, reducedMotion: 'reduce' })
        for (const summary of await page.locator('summary').all()) await summary.click()
        expect(await seriousOf(page)).toEqual([])
      },
    )

    test('follows its address as soon as it is loaded', async () => {
      const page = await browser.newPage()
      onTestFinished(() => page.close())
      await page.addInitScript(`addEventListener('load', () => {
        history.pushState(null, '', '?scene=stream${QUICK}')
        dispatchEvent(new Event('popstate'))
      })`)
      await page.goto(`${root}?scene=limit${QUICK}`)
      await page.locator('.outcome[data-of^="?scene=stream&"]').waitFor({ timeout: 60_000 })
    })

    test('embedded, it shows only the scene, from the given moment', async () => {
      const { page } = await open(`?scene=limit${QUICK}&at=12.5&embed`, { reducedMotion: 'reduce' })
      expect(await page.getByRole('navigation').count()).toBe(0)
      expect(await page.getByRole('slider').count()).toBe(0)
      expect(await page.getByRole('table', { includeHidden: true }).count()).toBe(0)
      expect(await page.locator('.promise').textContent()).toContain('once confirmed counts show')
      expect(await page.locator('.clock').textContent()).toMatch(/^12\.5 s of/)
      await page.getByRole('button', { name: 'Play' }).click()
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      expect(page.url()).toMatch(/&embed$/)
      for (const name of ['Change it in the playground', 'Where it is tested'])
        expect(await page.getByRole('link', { name }).getAttribute('target')).toBe('_top')
    })

    test('embedded, it reports its height to the page around it', async () => {
      const page = await browser.newPage()
      onTestFinished(() => page.close())
      await page.goto(`${root}guides/try-it.html`)
      const told = page.evaluate(`new Promise((resolve) => {
        addEventListener('message', ({ data }) => resolve(data.weirHeight))
        const frame = document.createElement('iframe')
        frame.src = '/?scene=stream${QUICK}&embed'
        frame.style.height = '0'
        document.body.append(frame)
      })`)
      expect(await told).toBeGreaterThan(200)
    })
  },
)

/** Another value that a control can have. */
function another(control: Control, value: unknown): string | number {
  if (control.kind === 'choice') return control.choices.find(([choice]) => choice !== value)?.[0] as string
  if (control.kind === 'text') return `${value} `
  // A lighter value, if a heavier one would make the run longer.
  if (control.name === 'load' || control.name === 'limit') return control.name === 'load' ? 2 : 30
  return value === control.least ? control.least + control.step : control.least
}
