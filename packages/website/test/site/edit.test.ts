import { expect, test } from 'vitest'
import { editPatternOf } from '../../src/site/edit.ts'

test.each([
  ['https://github.com/someone/weir', 'https://github.com/someone/weir/edit/HEAD/:path'],
  ['git+https://github.com/someone/weir.git', 'https://github.com/someone/weir/edit/HEAD/:path'],
  ['github:someone/weir', 'https://github.com/someone/weir/edit/HEAD/:path'],
  ['gitlab:someone/weir', 'https://gitlab.com/someone/weir/-/edit/HEAD/:path'],
])('a page of %s can be edited', (repository, pattern) => {
  expect(editPatternOf(repository)).toBe(pattern)
})

test.each(['http://127.0.0.1:1/someone/weir', 'weir', ''])('pages have no link to edit them if the host of %j is unknown', (repository) => {
  expect(editPatternOf(repository)).toBeUndefined()
})
