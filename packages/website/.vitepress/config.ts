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
  // In the page itself: browsers resolve its address anew when the page's own changes.
  head: [
    [
      'link',
      {
        rel: 'icon',
        href: `data:image/svg+xml,${encodeURIComponent(readFileSync(join(ROOT, 'packages/website/src/site/favicon.svg'), 'utf8'))}`,
      },
    ],
  ],
  // Headings have the addresses that they have in the repository.
  markdown: { anchor: { slugify: (text: string) => slug(text) }, config: scenes },
  vite: {
    // Shortened at the end, once addresses can be anywhere. A picture's address tells which scene it shows, so none is put into its page.
    build: { minify: false, chunkSizeWarningLimit: 2_000, assetsInlineLimit: 0 },
    // The stage is written before the program runs, not by it.
    server: { host: '127.0.0.1' },
  },
  // What a code means has no page after it.
  transformPageData: ({ relativePath, frontmatter }) => {
    if (relativePath.startsWith('errors/')) Object.assign(frontmatter, { prev: false, next: false })
  },
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guides', link: '/guides/which-limiter' },
      { text: 'Reference', link: '/reference/options' },
      // A page of its own, which VitePress does not know.
      { text: 'Playground', link: '/playground/index.html', target: '_self' },
      menuOf(version, (process.env['WEIR_SITE_VERSIONS'] ?? '').split(',').filter(Boolean)),
    ],
    sidebar: sidebar(),
    search: { provider: 'local', options: { detailedView: true } },
    outline: [2, 3],
  },
})
