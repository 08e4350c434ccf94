import { CHROMIUM, complaints, launch, MISSING } from '@weir/tooling/browser'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { dashboard, password } from '../src/index.ts'
import { PASSWORD, serve, throttlerFor } from './servers.ts'

/** Chromium logs this for each answer 401 and 429. Every other message is an error of the page. */
const EXPECTED = /Failed to load resource: the server responded with a status of (401|429)/

describe.skipIf(CHROMIUM === undefined)(
  `signing in, in a real browser${CHROMIUM === undefined ? ` (skipped: ${MISSING})` : ''}`,
  { timeout: 60_000 },
  () => {
    let browser: Browser
    beforeAll(async () => {
      browser = await launch()
    }, 60_000)
    afterAll(() => browser.close())
    afterEach(() => void vi.useRealTimers())

    async function open(settings: Parameters<Browser['newContext']>[0] = {}) {
      const throttler = throttlerFor()
      const handler = dashboard(throttler, { authorize: password(PASSWORD), actions: true })
      onTestFinished(() => handler.close())
      const { url } = await serve(handler)
      const context = await browser.newContext(settings)
      onTestFinished(() => context.close())
      const page = await context.newPage()
      const heard = complaints(page)
      const address = `${url}/deep/mount/weir`
      await page.goto(address)
      await page.getByRole('heading', { name: 'Weir' }).waitFor()
      return { throttler, page, context, address: `${address}/`, faults: () => heard.filter((text) => !EXPECTED.test(text)) }
    }

    /** Uses only the keyboard. The field is focused with the first frame, later than its text appears. */
    async function type(page: Page, text: string): Promise<void> {
      await page.locator('#password:focus').waitFor()
      await page.keyboard.type(text)
      await page.keyboard.press('Enter')
    }

    async function sessions(context: BrowserContext) {
      return (await context.cookies()).filter(({ name }) => name.startsWith('weir-session-'))
    }

    const limits = (page: Page) => page.getByRole('heading', { name: 'Limits' })
    const field = (page: Page) => page.getByLabel('Password')

    test('whoever comes by a link of another site goes on by one of ours, without signing in again', async () => {
      const { page, address } = await open()
      await type(page, PASSWORD)
      await limits(page).waitFor()
      const { url } = await serve((_request, response) => {
        response.setHeader('Content-Type', 'text/html')
        response.end(`<a href="${address}">to the dashboard</a>`)
      })
      // Browsers distinguish sites by name, not by port.
      await page.goto(url.replace('127.0.0.1', 'localhost'))
      await page.getByRole('link', { name: 'to the dashboard' }).click()
      await page.getByRole('link', { name: 'Continue to the dashboard' }).click()
      await limits(page).waitFor()
    })

    test('with the keyboard alone: first wrong, then right, then the dashboard is live', async () => {
      const { page, context, throttler, address, faults } = await open()
      await type(page, 'not the password')
      await page.getByRole('alert').getByText('Wrong password.').waitFor()
      await page.locator('#password:focus').waitFor()
      expect(await field(page).inputValue()).toBe('')
      expect(await page.evaluate('document.getElementById("password").getAttribute("aria-describedby")')).toBe('said')
      await type(page, PASSWORD)
      await limits(page).waitFor()
      expect(page.url()).toBe(address)
      throttler.block('mallory', '1h', { policy: 'user' })
      await page
        .getByRole('rowheader', { name: /mallory/ })
        .first()
        .waitFor()
      await page.getByRole('button', { name: 'Unblock mallory in user' }).click()
      await expect.poll(() => throttler.peek('mallory').allowed).toBe(true)
      const [session] = await sessions(context)
      expect(session).toMatchObject({ path: '/deep/mount/weir', httpOnly: true, sameSite: 'Strict', secure: false })
      expect(await page.evaluate('document.cookie')).toBe('')
      expect(faults()).toEqual([])
    })

    test('without JavaScript', async () => {
      const { page } = await open({ javaScriptEnabled: false })
      await field(page).fill('not the password')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('alert').getByText('Wrong password.').waitFor()
      await field(page).fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await expect.poll(() => page.title()).toBe('Weir')
    })

    test('signing out leaves nothing behind: not in other tabs, nor behind the back button', async () => {
      const { page, context, throttler, address, faults } = await open()
      await type(page, PASSWORD)
      await limits(page).waitFor()
      throttler.block('mallory', '1h')
      const tab = await context.newPage()
      await tab.goto(address)
      await tab
        .getByRole('rowheader', { name: /mallory/ })
        .first()
        .waitFor()
      await page.getByRole('button', { name: 'Sign out' }).focus()
      await page.keyboard.press('Enter')
      await field(page).waitFor()
      await field(tab).waitFor()
      expect(await sessions(context)).toEqual([])
      await page.goto('about:blank')
      await page.goBack()
      await field(page).waitFor()
      await page.goBack()
      await page.goForward()
      for (const one of [page, tab]) {
        expect(await one.getByText('mallory').count()).toBe(0)
        expect(await one.content()).not.toContain('mallory')
      }
      expect(faults()).toEqual([])
    })

    test('when the session is over the page goes back to sign in, and shows nothing any more', async () => {
      const { page, throttler, faults } = await open()
      await type(page, PASSWORD)
      throttler.block('mallory', '1h')
      await page
        .getByRole('rowheader', { name: /mallory/ })
        .first()
        .waitFor()
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 13 * 3_600_000 })
      await field(page).waitFor()
      expect(await page.content()).not.toContain('mallory')
      expect(faults()).toEqual([])
    })

    test('an action after the session is over leads there too', async () => {
      const { page, context, throttler } = await open()
      await type(page, PASSWORD)
      throttler.block('mallory', '1h', { policy: 'user' })
      const unblock = page.getByRole('button', { name: 'Unblock mallory in user' })
      await unblock.waitFor()
      // The page reads regularly too, and each of its requests leads to the sign-in page. Here only the action may.
      await page.route(/\/(find|rules|audit|series)$/, (route) => route.abort())
      await context.clearCookies()
      await unblock.click()
      await field(page).waitFor()
      expect(throttler.peek('mallory').allowed).toBe(false)
    })

    test('too many attempts are told to wait', async () => {
      const { page, context, faults } = await open()
      for (let i = 0; i < 10; i++) {
        await type(page, `guess number ${i}`)
        await page.getByText('Wrong password.').waitFor()
        await page.goto(page.url())
      }
      await type(page, PASSWORD)
      await page.getByText(/^Too many attempts\. Try again in \d+ s\.$/).waitFor()
      expect(await sessions(context)).toEqual([])
      expect(faults()).toEqual([])
    })

    test.each([
      ['wide', 1280, 800],
      ['a phone', 360, 740],
      ['a phone on its side', 740, 340],
    ])('fits: %s', async (_what, width, height) => {
      const { page } = await open({ viewport: { width, height } })
      await type(page, 'not the password')
      await page.getByText('Wrong password.').waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
      await page.getByRole('button', { name: 'Sign in' }).scrollIntoViewIfNeeded()
      expect(await page.getByRole('main').count()).toBe(1)
      await type(page, PASSWORD)
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
      // Shows the longest state beside the button.
      await page.evaluate(`document.querySelector('.state').textContent = 'Without the store'`)
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    })
  },
)
