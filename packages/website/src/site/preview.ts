import { join } from 'node:path'
import type { HeadConfig, PageData } from 'vitepress'
import { ROOT } from './pages.ts'

/** The page for unknown addresses, which has no address of its own. */
const NOWHERE = '404.md'

/** The picture that a link preview shows, 1200 by 630 pixels. */
export const CARD = 'card.png'
export const CARD_FILE: string = join(ROOT, 'packages/website/src/site', CARD)

/**
 * Open Graph tags of a page, for link previews, and its description, which VitePress doesn't escape.
 *
 * @param address - of the site's top, ending with `/`. Without it, the page's address and the picture are left out, because they must be
 * absolute
 */
export function previewOf({ relativePath, title, description }: PageData, address: string | undefined): HeadConfig[] {
  const property = (name: string, content: string): HeadConfig => ['meta', { property: `og:${name}`, content }]
  const tags: HeadConfig[] = [
    ['meta', { name: 'description', content: description }],
    property('type', 'website'),
    property('site_name', 'Weir'),
    property('title', title),
    property('description', description),
  ]
  if (address === undefined || relativePath === NOWHERE) return tags
  const path = relativePath.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '.html')
  return [
    ...tags,
    property('url', address + path),
    property('image', address + CARD),
    ['meta', { name: 'twitter:card', content: 'summary_large_image' }],
  ]
}
