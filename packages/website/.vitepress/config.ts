import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'
import { ROOT } from '../src/site/pages.ts'
import { BASE } from '../src/site/relocatable.ts'
import { scenes } from '../src/site/scenes.ts'
import { sidebar } from '../src/site/sidebar.ts'
import { STAGE } from '../src/site/stage.ts'
import { menuOf } from '../src/site/versions.ts'

const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/core/package.json'), 'utf8')) as { version: string }

export default defineConfig({
  srcDir: STAGE,
  outDir: process.env['WEIR_SITE'] ?? join(ROOT, 'packages/website/dist/site'),
  cacheDir: join(ROOT, 'packages/website/node_modules/.vitepress'),
  base: process.env['WEIR_SITE'] === undefined ? '/' : BASE,
  title: 'Weir',
  description: 'A distributed rate limiter for Node.js, with no I/O on the request path',
  lang: 'en',
  // An inline icon, because browsers resolve an icon's address again when the page's address changes.
  head: [
    [
      'link',
      {
        rel: 'icon',
        href: `data:image/svg+xml,${encodeURIComponent(readFileSync(join(ROOT, 'docs/logo.svg'), 'utf8'))}`,
      },
    ],
  ],
  // Headings get the same anchors as in the repository.
  markdown: { anchor: { slugify: (text: string) => slug(text) }, config: scenes },
  vite: {
    // Minified after the addresses are relocated. Inlined pictures would lose their address, which names the scene, so none is inlined.
    build: { minify: false, chunkSizeWarningLimit: 2_000, assetsInlineLimit: 0 },
    // The stage is written before VitePress starts.
    server: { host: '127.0.0.1' },
  },
  // Pages of error codes have no previous and next page.
  transformPageData: ({ relativePath, frontmatter }) => {
    if (relativePath.startsWith('errors/')) Object.assign(frontmatter, { prev: false, next: false })
  },
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guides', link: '/guides/which-limiter' },
      { text: 'Reference', link: '/reference/options' },
      // A separate page, which VitePress does not manage.
      { text: 'Playground', link: '/playground/index.html', target: '_self' },
      menuOf(version, (process.env['WEIR_SITE_VERSIONS'] ?? '').split(',').filter(Boolean)),
    ],
    sidebar: sidebar(),
    logo: '/logo.svg',
    search: { provider: 'local', options: { detailedView: true } },
    outline: [2, 3],
  },
})
