import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'
import { editPatternOf, namedRepository } from '../src/site/edit.ts'
import { ROOT } from '../src/site/pages.ts'
import { previewOf } from '../src/site/preview.ts'
import { BASE } from '../src/site/relocatable.ts'
import { scenes } from '../src/site/scenes.ts'
import { sidebar } from '../src/site/sidebar.ts'
import { STAGE } from '../src/site/stage.ts'
import { installTabs } from '../src/site/tabs.ts'
import { menuOf } from '../src/site/versions.ts'

const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/core/package.json'), 'utf8')) as { version: string }

/** A page that VitePress does not manage. */
const PLAYGROUND = 'playground/index.html'
/** The site's absolute address, if it is known. */
const address = process.env['WEIR_SITE_ADDRESS'] || undefined
const repository = process.env['WEIR_SITE_REPOSITORY'] || namedRepository()
const pattern = repository === undefined ? undefined : editPatternOf(repository)

/**
 * Ranks guides and reference before pages that repeat their words. VitePress sends the source of this function to browsers, so it can't
 * use anything outside.
 */
const boostDocument = (id: string): number => (/\/(?:migration|evidence|errors|examples|packages|project)\//.test(id) ? 0.5 : 1)

export default defineConfig({
  srcDir: STAGE,
  outDir: process.env['WEIR_SITE'] ?? join(ROOT, 'packages/website/dist/site'),
  cacheDir: join(ROOT, 'packages/website/node_modules/.vitepress'),
  base: process.env['WEIR_SITE'] === undefined ? '/' : BASE,
  title: 'Weir',
  description: 'A distributed rate limiter for Node.js, with no I/O on the request path',
  lang: 'en',
  ...(address === undefined ? {} : { sitemap: { hostname: address, transformItems: (items) => [...items, { url: PLAYGROUND }] } }),
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
  markdown: {
    // The default themes have too little contrast.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: (text: string) => slug(text) },
    config: (markdown) => {
      scenes(markdown)
      installTabs(markdown)
    },
  },
  vite: {
    // Minified after the addresses are relocated. Inlined pictures would lose their address, which names the scene, so none is inlined.
    build: { minify: false, chunkSizeWarningLimit: 2_000, assetsInlineLimit: 0 },
    // The stage is written before VitePress starts.
    server: { host: '127.0.0.1' },
  },
  transformPageData: (page) => {
    const { relativePath, frontmatter } = page
    // Pages of error codes have no previous and next page.
    if (relativePath.startsWith('errors/')) Object.assign(frontmatter, { prev: false, next: false })
    // The link that edits a page leads to the repository's file, not to the staged one.
    if (typeof frontmatter['source'] === 'string') page.filePath = frontmatter['source']
  },
  transformHead: ({ pageData }) => previewOf(pageData, address),
  themeConfig: {
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Guides', link: '/guides/which-limiter' },
      { text: 'Reference', link: '/reference/options' },
      { text: 'Playground', link: `/${PLAYGROUND}`, target: '_self' },
      menuOf(version, (process.env['WEIR_SITE_VERSIONS'] ?? '').split(',').filter(Boolean)),
    ],
    sidebar: sidebar(),
    logo: '/logo.svg',
    ...(pattern === undefined ? {} : { editLink: { pattern } }),
    search: { provider: 'local', options: { detailedView: true, miniSearch: { searchOptions: { boostDocument } } } },
    outline: [2, 3],
  },
})
