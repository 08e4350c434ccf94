import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CHROMIUM, complaints, launch, MISSING } from '@weir/tooling/browser'
import { run } from '@weir/tooling/run'
import type { AxeResults } from 'axe-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { nowhereOf } from '../../src/site/versions.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** The output folder of `pnpm --dir packages/website run site`. */
const OUT = fileURLToPath(new URL('../../dist/site', import.meta.url))
const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
/** Whether turbo has already built the site. Otherwise this test builds it. */
const built = process.env['TURBO_HASH'] !== undefined
const directory = built ? OUT : mkdtempSync(join(tmpdir(), 'weir-site-test-'))
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}
/** A folder on any server, which is unknown when the site is built. */
const FOLDER = '/some/where/'
let server: Server | undefined
let top: string

beforeAll(async () => {
  if (!built) {
    // Without vitest's variables, because VitePress behaves differently within vitest.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITE|NODE_ENV|TEST)/.test(name)))
    const { scripts } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as { scripts: { site: string } }
    const [, ...args] = scripts.site.split(' ')
    const { status, output } = await run(process.execPath, [...args, '--out', directory], { cwd: PACKAGE, env })
    expect(status, output).toBe(0)
  }
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://h')
    const path = decodeURIComponent(pathname.slice(FOLDER.length))
    const file = join(directory, path === '' ? 'index.html' : path)
    if (!pathname.startsWith(FOLDER) || path.includes('..') || !existsSync(file))
      return void response.writeHead(404, { 'Content-Type': 'text/html' }).end(readFileSync(join(directory, '404.html')))
    response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  top = `http://127.0.0.1:${(server.address() as AddressInfo).port}${FOLDER}`
}, 240_000)

afterAll(() => {
  server?.close()
  if (!built) rmSync(directory, { recursive: true, force: true })
})

describe('for programs that read', () => {
  test('each page stands beside itself as Markdown, and a list names all', async () => {
    const list = await (await fetch(`${top}llms.txt`)).text()
    const pages = [...list.matchAll(/^- \[(.+?)\]\((.+?)\): /gm)].map(([, , path = '']) => path)
    expect(pages).toContain('guides/leases.md')
    expect(pages).toContain('errors/weir_invalid_option.md')
    for (const page of pages) {
      expect((await fetch(top + page)).status, page).toBe(200)
      expect((await fetch(top + page.replace(/\.md$/, '.html'))).status, page).toBe(200)
    }
  })
})

describe('for search engines and link previews', () => {
  test('the sitemap has the address of each page', async () => {
    const sitemap = await (await fetch(`${top}sitemap.xml`)).text()
    const addresses = [...sitemap.matchAll(/<loc>(.*?)<\/loc>/g)].map(([, address = '']) => address)
    for (const path of ['', 'start.html', 'guides/keys.html', 'recipes/', 'playground/index.html'])
      expect(addresses).toContain(`http://127.0.0.1/docs/${path}`)
    for (const address of addresses) expect(address).toMatch(/^http:\/\/127\.0\.0\.1\/docs\//)
    const missing = addresses.map((address) => address.replace(/.*\/docs\//, '').replace(/(^|\/)$/, '$1index.html'))
    expect(missing.filter((path) => !existsSync(join(directory, path)))).toEqual([])
  })

  test('a page has a title, a summary, an address and a picture', async () => {
    const html = await (await fetch(`${top}guides/keys.html`)).text()
    expect(html).toContain('<meta property="og:title" content="Keys: whose limit is it?">')
    expect(html).toContain('<meta property="og:description" content="Requests with the same key share one count.">')
    expect(html).toContain('<meta property="og:url" content="http://127.0.0.1/docs/guides/keys.html">')
    expect(html.match(/<meta name="description"/g)).toHaveLength(1)
    const [, image = ''] = /property="og:image" content="http:\/\/127\.0\.0\.1\/docs\/(.*?)"/.exec(html) ?? []
    expect((await fetch(top + image)).status).toBe(200)
  })
})

test.each([
  ['guides/keys', 'docs/guides/keys.md'],
  ['start', 'README.md'],
  ['packages/core', 'packages/core/README.md'],
  ['errors/weir_closed', 'docs/reference/errors.md'],
])('a page links to its file in the repository, to edit it: %s', async (page, file) => {
  const html = await (await fetch(`${top}${page}.html`)).text()
  const [, link] = /href="([^"]*)"[^>]*>(?:(?!<\/a>).)*Edit this page/s.exec(html) ?? []
  expect(link).toMatch(/^https:/)
  expect(link?.endsWith(`/example/weir/edit/HEAD/${file}`)).toBe(true)
  expect(existsSync(join(PACKAGE, '../..', file))).toBe(true)
})

test('the site, the playground and the dashboard have one logo', () => {
  const read = (file: string) => readFileSync(join(PACKAGE, '../..', file), 'utf8')
  const [, waves = ''] = / d="(.*?)"/.exec(read('docs/logo.svg')) ?? []
  const pages = [
    'packages/website/src/playground/page/index.html',
    'packages/dashboard/page/index.html',
    'packages/dashboard/page/sign-in.html',
  ]
  for (const page of pages) expect(read(page), page).toContain(waves)
  expect(read('README.md')).toContain('](docs/logo.svg)')
  const home = readFileSync(join(directory, 'index.html'), 'utf8')
  expect(home.match(/<img class="VPImage [^>]*src="\.\/logo\.svg"/g)).toHaveLength(2)
  expect(decodeURIComponent(/rel="icon" href="data:image\/svg\+xml,(.*?)"/.exec(home)?.[1] ?? '')).toContain(waves)
})

test.each(['exactness', 'far-regions', 'algorithms', 'how-it-works', 'try-it'])(
  'a picture of a scene stands in a place where that scene can run, and as Markdown is a picture: %s',
  async (guide) => {
    const html = await (await fetch(`${top}guides/${guide}.html`)).text()
    expect(html).toMatch(/class="weir-scene"[^>]*>.*?<img[^>]*scene-\w+\./s)
    const [, image = ''] = /!\[[^\]]+\]\((\S*scene-\w+\.svg)\)/.exec(await (await fetch(`${top}guides/${guide}.md`)).text()) ?? []
    expect((await fetch(new URL(image, `${top}guides/`))).status).toBe(200)
  },
)

describe.skipIf(CHROMIUM === undefined)(`in a browser${CHROMIUM === undefined ? ` (${MISSING})` : ''}`, () => {
  let browser: Awaited<ReturnType<typeof launch>>
  beforeAll(async () => {
    browser = await launch()
  })
  // An open page keeps playing its scenes, so contexts are closed after each test.
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())))
  afterAll(() => browser?.close())

  test('pages fit in their windows, in light and dark, load nothing from elsewhere and complain of nothing', async () => {
    for (const [width, colorScheme] of [
      [360, 'dark'],
      [768, 'light'],
      [1440, 'dark'],
    ] as const) {
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme })
      const heard = complaints(page)
      const outside: string[] = []
      page.on('request', (request) => void (request.url().startsWith(top) || outside.push(request.url())))
      for (const path of ['', 'start.html', 'guides/algorithms.html', 'evidence/performance.html', 'errors/weir_invalid_option.html']) {
        await page.goto(top + path)
        await page.locator('.VPContent').waitFor()
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
        expect(wider, `${path} at ${width}`).toBeLessThanOrEqual(0)
        expect(await page.evaluate(() => document.documentElement.classList.contains('dark'))).toBe(colorScheme === 'dark')
      }
      expect(heard).toEqual([])
      expect(outside).toEqual([])
      await page.close()
    }
  }, 120_000)

  test('links lead within the site, and the search finds a page', async () => {
    const page = await browser.newPage()
    const heard = complaints(page)
    await page.goto(top)
    await page.getByRole('link', { name: 'Which limiter do I need?' }).click()
    await page.waitForURL(`${top}guides/which-limiter.html`)
    await page.getByRole('heading', { level: 1, name: 'Which limiter do I need?' }).waitFor()
    await page.getByRole('link', { name: 'Exactness', exact: true }).click()
    await page.waitForURL(`${top}guides/exactness.html`)
    // A reloaded page shows its text a moment before it handles keys.
    await expect
      .poll(() => page.keyboard.press('Control+k').then(() => page.getByRole('searchbox').isVisible()), { timeout: 60_000 })
      .toBe(true)
    await page.getByRole('searchbox').fill('redis is down')
    await page.locator('.VPLocalSearchBox .result').first().waitFor()
    await page.locator('.VPLocalSearchBox .result', { hasText: 'When Redis is down' }).first().click()
    await page.waitForURL(/(?:guides\/exactness|start)\.html#when-redis-is-down$/)
    expect(heard).toEqual([])
  }, 120_000)

  test('the search finds a page about a question first', async () => {
    const page = await browser.newPage()
    await page.goto(`${top}overview.html`)
    await expect
      .poll(() => page.keyboard.press('Control+k').then(() => page.getByRole('searchbox').isVisible()), { timeout: 60_000 })
      .toBe(true)
    const first = page.locator('.VPLocalSearchBox .result').first()
    for (const [words, found] of [
      ['429', 'reference/http.html#a-rejection-429'],
      ['rate limit per user', 'guides/keys.html#a-rate-limit-per-user-or-api-key'],
      ['kubernetes', 'guides/kubernetes.html#kubernetes'],
      ['X-RateLimit', 'reference/http.html#headers-on-every-response'],
      ['cloudflare', 'guides/behind-a-proxy.html#nginx-aws-cloudflare'],
    ] as const) {
      await page.getByRole('searchbox').fill(words)
      await expect.poll(() => first.evaluate((link) => (link as HTMLAnchorElement).href), { timeout: 30_000 }).toBe(top + found)
    }
  }, 120_000)

  test('install commands and the first code have tabs', async () => {
    const page = await browser.newPage({ viewport: { width: 360, height: 900 } })
    const heard = complaints(page)
    await page.goto(top)
    const code = page.locator('.vp-code-group .blocks .active')
    const tab = (name: string) => page.locator('.vp-code-group label').getByText(name, { exact: true })
    await tab('pnpm').click()
    await expect.poll(() => code.first().textContent()).toContain('pnpm add @weir/express @weir/redis ioredis')
    for (const [name, text] of [
      ['Fastify', 'await app.register('],
      ['Koa', 'new Koa()'],
      ['Express', 'express()'],
    ] as const) {
      await tab(name).click()
      await expect.poll(() => code.nth(1).textContent()).toContain(text)
    }
    // With the keyboard, too.
    await page.keyboard.press('ArrowRight')
    await expect.poll(() => code.nth(1).textContent()).toContain('await app.register(')
    expect(heard).toEqual([])
  }, 120_000)

  test.each(['light', 'dark'] as const)(
    'axe finds nothing serious: %s',
    async (colorScheme) => {
      for (const path of ['', 'start/express.html', 'nothing.html']) {
        const page = await browser.newPage({ colorScheme, reducedMotion: 'reduce' })
        await page.goto(top + path)
        await page.locator('.VPContent h1').first().waitFor()
        await page.evaluate(AXE)
        // Parts of the theme: the search button's name lacks the shortcut, and items of the sidebar are buttons that contain links.
        const { violations } = (await page.evaluate('axe.run({ exclude: [".DocSearch-Button", ".VPSidebarItem"] })')) as AxeResults
        const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
        expect(
          serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
          path,
        ).toEqual([])
        await page.close()
      }
    },
    120_000,
  )

  test('the page for an unknown address searches for the words of the address', async () => {
    const page = await browser.newPage()
    await page.goto(`${top}guides/limit-per-usr%20.html`)
    const words = page.getByRole('searchbox', { name: 'Search the documentation' })
    await expect.poll(() => words.inputValue()).toBe('limit per usr')
    await page.getByRole('search').getByRole('button', { name: 'Search' }).click()
    await page.locator('.VPLocalSearchBox .result', { hasText: 'A rate limit per user or API key' }).first().click()
    await page.waitForURL(`${top}guides/keys.html#a-rate-limit-per-user-or-api-key`)
  }, 120_000)

  test.each(['nothing.html', 'guides/nothing.html', 'playground/nothing'])(
    'where there is nothing, a page says so and leads home: %s',
    async (path) => {
      const page = await browser.newPage()
      await page.goto(top + path)
      await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor()
      // The page looks like the others, and its navigation works.
      await page.getByRole('link', { name: 'Guides', exact: true }).first().click()
      await page.waitForURL(`${top}guides/which-limiter.html`)
      await page.goto(top + path)
      await page.getByRole('link', { name: /home/i }).last().click()
      await page.waitForURL(top)
    },
    120_000,
  )

  test('where no version has a page, one leads to the newest', async () => {
    const page = await browser.newPage()
    const heard = complaints(page)
    await page.route('**/released/**', (route) => route.fulfill({ contentType: 'text/html', body: nowhereOf('1.10.0') }))
    await page.goto(new URL('/released/1.9.3/guides/nothing.html', top).href)
    await page.getByRole('link', { name: 'Weir 1.10.0' }).click()
    await page.waitForURL('**/released/1.10.0/index.html')
    expect(heard).toEqual([])
  })

  test('the navigation leads to the playground, which runs, and says where its promise is tested', async () => {
    const page = await browser.newPage()
    const heard = complaints(page)
    const outside: string[] = []
    page.on('request', (request) => void (request.url().startsWith(top) || outside.push(request.url())))
    await page.goto(`${top}guides/accuracy.html`)
    await page.getByRole('navigation').getByRole('link', { name: 'Playground' }).first().click()
    await page.locator('[data-digest]').waitFor({ timeout: 60_000 })
    await page.getByRole('link', { name: 'Where it is tested' }).click()
    await page.waitForURL(`${top}guides/try-it.html#one-limit-n-processes`)
    await page.getByRole('heading', { level: 2, name: 'One limit, N processes' }).waitFor()
    expect(heard).toEqual([])
    expect(outside).toEqual([])
  }, 120_000)

  test.each(['index', 'guides/far-regions', 'guides/algorithms', 'guides/exactness'])(
    'a scene runs in the page, and is a picture before: %s',
    async (path) => {
      const plain = await browser.newPage({ javaScriptEnabled: false })
      await plain.goto(`${top}${path}.html`)
      await plain.locator('.weir-scene img').first().waitFor()
      expect(await plain.locator('iframe').count()).toBe(0)
      await plain.close()

      const page = await browser.newPage({ viewport: { width: 1000, height: 600 } })
      const heard = complaints(page)
      await page.goto(`${top}${path}.html`)
      const box = page.locator('.weir-scene').first()
      await box.waitFor()
      // A scene far below is not loaded.
      if (((await box.boundingBox())?.y ?? 0) > 1000) expect(await box.locator('iframe').count()).toBe(0)
      await box.scrollIntoViewIfNeeded()
      const scene = box.frameLocator('iframe')
      await scene.locator('[data-digest]').waitFor({ timeout: 60_000 })
      // The scene has replaced the picture, and is completely visible.
      await box.locator('img').waitFor({ state: 'detached' })
      const missing = async () => {
        const needed = await scene.locator('main').evaluate((main) => Math.ceil(main.getBoundingClientRect().height))
        return needed - ((await box.locator('iframe').boundingBox())?.height ?? 0)
      }
      await expect.poll(missing, { timeout: 30_000 }).toBe(0)
      expect(await scene.getByRole('slider').count()).toBe(0)
      expect(heard).toEqual([])
    },
    120_000,
  )
})
