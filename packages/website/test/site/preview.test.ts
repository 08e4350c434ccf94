import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CARD_FILE, previewOf } from '../../src/site/preview.ts'

const page = (relativePath: string) => ({
  relativePath,
  filePath: '',
  title: 'Keys',
  description: 'Whose "limit".',
  headers: [],
  frontmatter: {},
})

/** The contents of the tags of a page, by name. */
function tagsOf(relativePath: string, address?: string): Record<string, string | undefined> {
  const attributes = previewOf(page(relativePath), address).map(([, attribute]) => attribute)
  return Object.fromEntries(attributes.map(({ property, name, content }) => [property ?? name, content]))
}

test('a link preview has the title and the summary of the page', () => {
  expect(tagsOf('guides/keys.md')).toEqual({
    description: 'Whose "limit".',
    'og:type': 'website',
    'og:site_name': 'Weir',
    'og:title': 'Keys',
    'og:description': 'Whose "limit".',
  })
})

test.each([
  ['index.md', 'http://127.0.0.1:1/docs/'],
  ['guides/keys.md', 'http://127.0.0.1:1/docs/guides/keys.html'],
  ['recipes/index.md', 'http://127.0.0.1:1/docs/recipes/'],
])('with the address of the site, it has that of %s and a picture', (path, url) => {
  const tags = tagsOf(path, 'http://127.0.0.1:1/docs/')
  expect(tags['og:url']).toBe(url)
  expect(tags['og:image']).toBe('http://127.0.0.1:1/docs/card.png')
})

test('the page for unknown addresses has no address', () => {
  expect(tagsOf('404.md', 'http://127.0.0.1:1/docs/')).not.toHaveProperty('og:url')
})

test('the picture has the size that previews show', () => {
  const png = readFileSync(CARD_FILE)
  expect([png.subarray(1, 4).toString(), png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual(['PNG', 1200, 630])
})
