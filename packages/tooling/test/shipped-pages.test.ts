import { expect, test } from 'vitest'
import { shippedPages } from '../src/shipped-pages.js'

const page = (path: string, text = '') => ({ path, text })

test('pages that users need beside the code are shipped', () => {
  const paths = ['README.md', 'guides/keys.md', 'reference/options.md', 'recipes/jwt.md', 'errors/weir_one.md', 'evidence/leases.md']
  expect(shippedPages(paths.map((path) => page(path))).map(({ path }) => path)).toEqual(paths.slice(1, 5))
})

test('links to shipped pages stay, and links to other pages and to images become text', () => {
  const text = `[keys](keys.md#a), [here](#b), [out](https://x.test/a.md), [\`a\` [1]](../evidence/leases.md), ![a picture](../images/x.svg),
[home](../README.md#start) and [options](../reference/options.md)`
  const [changed] = shippedPages([page('guides/plans.md', text), page('guides/keys.md'), page('reference/options.md')])
  expect(changed?.text).toBe(`[keys](keys.md#a), [here](#b), [out](https://x.test/a.md), \`a\` [1], a picture,
home and [options](../reference/options.md)`)
})
