import { gzipSync } from 'node:zlib'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { SCENES } from '../../src/playground/settings/scenes.ts'
import { CHROMIUM, complaints, launch, MISSING, seriousOf, serve, unserve } from './browser.ts'

/** Settings with very short runs. */
const QUICK = `&limit=20&interval=10&load=1.5&${new URLSearchParams({ options: "{ limit: 20, interval: '10s' }" })}`
const PHONE = { width: 360, height: 740 }
const DESKTOP = { width: 1440, height: 900 }
const SIZES = [PHONE, DESKTOP].map((viewport) => [viewport.width, viewport] as const)
const LINE = '192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 12\n'
/** The content of a long log, which is no request in any line, so that its replay costs little. */
const LONG = 'x\n'.repeat(1_000_010)

/** Delays messages to the worker while `held` is true. */
const HELD = `{
  const post = Worker.prototype.postMessage
  const waiting = []
  held = false
  Worker.prototype.postMessage = function (message) {
    if (held) waiting.push(() => post.call(this, message))
    else post.call(this, message)
  }
  release = () => {
    held = false
    for (const send of waiting.splice(0)) send()
  }
}`

describe.skipIf(CHROMIUM === undefined)(
  `a visit to the playground${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
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

    async function open(address: string, options: BrowserContextOptions = {}, script?: string) {
      const page = await browser.newPage({ viewport: DESKTOP, reducedMotion: 'reduce', ...options })
      onTestFinished(() => page.close())
      const errors = complaints(page)
      if (script !== undefined) await page.addInitScript(script)
      await page.goto(root + address)
      await page.locator('[data-digest]').waitFor({ timeout: 60_000 })
      return { page, errors }
    }

    const answer = (page: Page, text: string) => page.locator('.answer', { hasText: text }).waitFor({ timeout: 60_000 })

    test.each(SIZES)('Share copies a link that opens the same run, at %i px', async (_, viewport) => {
      const { page, errors } = await open(`?scene=outage${QUICK}`, { viewport, permissions: ['clipboard-read', 'clipboard-write'] })
      await page.getByLabel('Processes, as a number', { exact: true }).fill('3')
      await page.getByLabel('Processes, as a number', { exact: true }).press('Enter')
      await page.locator('.outcome[data-of*="nodes=3"][aria-busy=false]').waitFor()
      await page.getByRole('button', { name: 'Share' }).click()
      await page.getByText('Link copied.', { exact: true }).waitFor()
      const link = String(await page.evaluate('navigator.clipboard.readText()'))
      expect(link).toBe(page.url())
      const digest = await page.locator('.outcome').getAttribute('data-digest')
      const { page: other } = await open(link.slice(root.length), { viewport })
      expect(await other.locator('.outcome').getAttribute('data-digest')).toBe(digest)
      // The copied link is no longer the page's.
      await page.locator('#set-fault').selectOption('hang')
      await expect.poll(() => page.getByText('Link copied.').count()).toBe(0)
      expect(errors).toEqual([])
    })

    test.each([
      ['the browser allows no copy', 'navigator.clipboard.writeText = () => Promise.reject(new Error("no"))'],
      ['the page has no clipboard, as without https', 'Object.defineProperty(navigator, "clipboard", { value: undefined })'],
    ])('Share points to the address if %s', async (_why, script) => {
      const { page } = await open(`?scene=limit${QUICK}`, {}, script)
      await page.getByRole('button', { name: 'Share' }).click()
      await page.getByText('copy the address of this page').waitFor()
    })

    test('"Kill Redis" begins two seconds before the fault', async () => {
      const { page } = await open('?scene=outage&limit=20&load=1.5&from=3.4&until=5')
      expect(await page.locator('.clock').textContent()).toMatch(/^32\.0 s of/)
      const { page: none } = await open('?scene=outage&limit=20&load=1.5&fault=none')
      expect(await none.locator('.clock').textContent()).toMatch(/^0 ms of/)
    })

    test('results of previous settings are marked during a run', async () => {
      const { page } = await open(`?scene=limit${QUICK}`, {}, HELD)
      const mark = page.getByText('Still the previous settings')
      expect(await mark.count()).toBe(0)
      await page.evaluate('held = true')
      await page.locator('#set-balancing').selectOption('zipf')
      await mark.waitFor()
      expect(await page.locator('.details').evaluate((details) => getComputedStyle(details).opacity)).toBe('0.6')
      await page.evaluate('release()')
      await mark.waitFor({ state: 'detached' })
      // A new scene has no previous results.
      await page.evaluate('held = true')
      await page.getByRole('link', { name: 'Far regions' }).click()
      await page.getByText('Running…').waitFor()
      expect(await page.getByRole('table').count()).toBe(0)
      await page.evaluate('release()')
      await page.locator('.outcome[data-of^="?scene=far"]').waitFor({ timeout: 60_000 })
    })

    test.each(SCENES.filter(({ replaysLogs }) => !replaysLogs).map(({ name }) => name))(
      'on a phone the picture stays visible above each control: %s',
      async (scene) => {
        const { page } = await open(`?scene=${scene}${QUICK}`, { viewport: PHONE })
        for (const control of await page.locator('.control').all()) {
          await control.evaluate((element) => element.scrollIntoView({ block: 'end' }))
          const [field, picture] = [await control.boundingBox(), await page.locator('.picture .panel').boundingBox()]
          if (field === null || picture === null) throw new Error('The page has no picture beside its controls.')
          expect(picture.y).toBeGreaterThanOrEqual(0)
          expect(field.y).toBeGreaterThanOrEqual(picture.y + picture.height)
          expect(field.y + field.height).toBeLessThan(PHONE.height + 1)
        }
      },
    )

    test.each(SIZES)('is as wide as the screen, and usable for everyone, at %i px', async (width, viewport) => {
      for (const { name } of SCENES) {
        const { page } = await open(`?scene=${name}${QUICK}`, { viewport })
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width)
        if (viewport === PHONE) expect(await seriousOf(page)).toEqual([])
        if (viewport === DESKTOP) {
          const [controls, picture] = [await page.locator('.controls').boundingBox(), await page.locator('.picture').boundingBox()]
          expect(controls?.y).toBe(picture?.y)
        }
        await page.close()
      }
    })

    test.each(SIZES)('a dropped gzip file is replayed, and stays out of the address, at %i px', async (_, viewport) => {
      const { page, errors } = await open(`?scene=policy${QUICK}`, { viewport, permissions: ['clipboard-read', 'clipboard-write'] })
      const bytes = [...gzipSync(LINE.repeat(50))]
      // Dropped beside the field, where the browser would otherwise open it.
      await page.evaluate(`{
        const dataTransfer = new DataTransfer()
        dataTransfer.items.add(new File([new Uint8Array(${JSON.stringify(bytes)})], 'access.log.gz'))
        const heading = document.querySelector('h1')
        for (const type of ['dragover', 'drop']) heading.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }))
      }`)
      await answer(page, 'Rejects 30 of 50 requests (60 %), from 1 of 1 client.')
      await page.getByText('access.log.gz, ').waitFor()
      expect(await seriousOf(page)).toEqual([])
      // The answer is above all other results.
      expect(await page.locator('.results h2').first().textContent()).toBe('Your access log')
      await page.getByRole('button', { name: 'Share' }).click()
      await page.getByText('Link copied. Your log is not part of it.').waitFor()
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(page.url())
      await page.getByRole('button', { name: 'Remove' }).click()
      await expect.poll(() => page.locator('.answer').count()).toBe(0)
      expect(errors).toEqual([])
    })

    test('a log of any length leaves the page usable, and shows how many lines were replayed', async () => {
      const { page } = await open(`?scene=policy${QUICK}`)
      await page.getByLabel('Choose files').setInputFiles({ name: 'long.log', mimeType: 'text/plain', buffer: Buffer.from(LONG) })
      await page.getByText('long.log, 2 MB').waitFor()
      // The controls react while the log is read.
      await page.locator('#set-balancing').selectOption('zipf')
      await expect.poll(() => new URL(page.url()).searchParams.get('balancing')).toBe('zipf')
      await page.getByText('only the first 1,000,000 of 1,000,010 lines were replayed').waitFor({ timeout: 60_000 })
      await page.getByLabel('Choose files').setInputFiles([
        { name: 'access.log', mimeType: 'text/plain', buffer: Buffer.from(LINE.repeat(15)) },
        { name: 'access.log.1.gz', mimeType: 'application/gzip', buffer: gzipSync(LINE.repeat(15)) },
      ])
      await answer(page, 'Rejects 10 of 30 requests (33 %), from 1 of 1 client.')
      await page.getByText('2 files, ').waitFor()
      await page.getByLabel('Choose files').setInputFiles({
        name: 'broken.gz',
        mimeType: 'application/gzip',
        buffer: gzipSync(LINE.repeat(15)).subarray(0, 40),
      })
      await page.getByRole('alert').getByText('decompress it first').waitFor({ timeout: 60_000 })
    })

    test('a long pasted text becomes a file, complete', async () => {
      const { page } = await open(`?scene=policy${QUICK}`)
      const paste = (text: string) =>
        page.locator('#set-log').evaluate((field, pasted) => {
          const clipboardData = new DataTransfer()
          clipboardData.setData('text/plain', pasted)
          field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
        }, text)
      await paste(LINE.repeat(5000))
      await page.getByText('Pasted text, ').waitFor()
      await answer(page, 'Rejects 4,980 of 5,000 requests')
      await page.getByRole('button', { name: 'Remove' }).click()
      // Also text that arrives otherwise.
      await page.locator('#set-log').evaluate((field, text) => {
        ;(field as HTMLTextAreaElement).value = text
        field.dispatchEvent(new InputEvent('input', { bubbles: true }))
      }, LINE.repeat(3000))
      await answer(page, 'Rejects 2,980 of 3,000 requests')
      await page.getByText('Pasted text, ').waitFor()
    })
  },
)
