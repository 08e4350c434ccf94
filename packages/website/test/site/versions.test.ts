import { expect, test } from 'vitest'
import { BASE, relocatedPage } from '../../src/site/relocatable.ts'
import { forwardTo, menuOf, nowhereOf, publishedOf } from '../../src/site/versions.ts'

test('of each minor version the last release is published, newest first', () => {
  const tags = ['v1.0.0', 'v1.0.10', 'v1.0.9', 'v1.10.0', 'v1.9.3', 'v2.0.0-rc.1', 'nightly', 'v2', '']
  expect(publishedOf(tags)).toEqual(['1.10.0', '1.9.3', '1.0.10'])
  expect(publishedOf(Array.from({ length: 20 }, (_, minor) => `v3.${minor}.0`))).toHaveLength(8)
  expect(publishedOf([])).toEqual([])
})

test('the menu leads to the versions beside this one, from pages of any depth', () => {
  const { text, items } = menuOf('1.9.3', ['1.10.0', '1.9.3', '1.0.10'])
  expect(text).toBe('1.9.3')
  expect(items.map((item) => item.text)).toEqual(['This is version 1.9.3', '1.10.0', '1.0.10'])
  const href = BASE + (items[1]?.link ?? '').slice(1)
  const written = /href="(.*?)"/.exec(relocatedPage(`<a href="${href}">x</a>`, '../'))?.[1] ?? ''
  expect(new URL(written, 'https://docs.test/weir/1.9.3/guides/keys.html').href).toBe('https://docs.test/weir/1.10.0/index.html')
})

test('the page above them leads to the newest', () => {
  expect(forwardTo('1.10.0')).toContain('content="0; url=1.10.0/index.html"')
})

test.each(['/weir/1.9.3/guides/nothing.html', '/weir/nothing.html', '/weir/0.1.0/'])(
  'where there is nothing, a page leads to the newest: %s',
  (pathname) => {
    const [, program = ''] = /<script>(.*?)<\/script>/s.exec(nowhereOf('1.10.0')) ?? []
    const link = { href: '' }
    new Function('location', 'document', program)({ pathname }, { getElementById: () => link })
    expect(link.href).toBe('/weir/1.10.0/index.html')
  },
)
