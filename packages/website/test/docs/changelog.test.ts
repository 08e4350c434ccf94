import { expect, test } from 'vitest'
import { changelog, changes } from '../../src/docs/changelog.ts'
import { replaceTable } from '../../src/docs/markdown.ts'
import { pages } from './pages.ts'

test('the page lists the changes of the next version. `pnpm charts changelog` writes it', async () => {
  const { text } = pages().find(({ path }) => path === 'docs/reference/changelog.md') ?? { text: '' }
  const { tables } = await changelog.make()
  expect(text).toBe(replaceTable(text, 'changelog', tables?.['changelog'] as string))
  expect(text).toMatch(/^## /m)
})

test('changes of several packages are listed once, and updated dependencies not at all', () => {
  const core =
    '# @weir/core\n\n## 0.2.0\n\n### Minor Changes\n\n- 0123abc: One change.\n\n  - a detail\n- Another.\n\n## 0.1.0\n\n### Minor Changes\n\n- First.\n'
  const redis =
    '# @weir/redis\n\n## 0.2.0\n\n### Minor Changes\n\n- 0123abc: One change.\n\n  - a detail\n\n### Patch Changes\n\n- Updated dependencies [0123abc]\n  - @weir/core@0.2.0\n'
  expect(changes([], [core, redis])).toBe('## 0.2.0\n\nOne change.\n\n- a detail\n\nAnother.\n\n## 0.1.0\n\nFirst.')
  expect(changes(['Soon.'], [])).toBe('## Next version\n\nSoon.')
})
