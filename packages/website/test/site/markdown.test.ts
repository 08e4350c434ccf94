import { describe, expect, test } from 'vitest'
import { Markdown } from '../../src/site/markdown.ts'

describe('a page of the repository', () => {
  test('has links as the site has them, and keeps the rest as it is written', () => {
    const text = '# A *title*\n\nSee [`b`](b.md#x) and [out](https://x.test/b.md), or\n![c](c.svg) in [here](#x).\n'
    const markdown = new Markdown(text).relink((url) => `../${url}`)
    expect(String(markdown)).toBe('# A *title*\n\nSee [`b`](../b.md#x) and [out](https://x.test/b.md), or\n![c](../c.svg) in [here](#x).\n')
    expect(markdown.title).toBe('A title')
  })

  test('keeps the words of a link to what is not on the site', () => {
    expect(String(new Markdown('a [`file` of code](src/x.ts) b').relink(() => undefined))).toBe('a `file` of code b')
  })

  test('may not show an image that is not there', () => {
    expect(() => new Markdown('![c](c.svg)').relink(() => undefined)).toThrow('c.svg')
  })

  test('leaves links in code alone', () => {
    const text = '```md\n[a](a.md)\n```\n`[a](a.md)`\n'
    expect(String(new Markdown(text).relink(() => 'b.md'))).toBe(text)
  })

  test('says nothing of what only our own tools know', () => {
    expect(String(new Markdown('```ts check\nlet a\n```\n\n```sh\nls\n```\n').plainCode())).toBe('```ts\nlet a\n```\n\n```sh\nls\n```\n')
  })

  test('is summarized by its first sentence', () => {
    expect(new Markdown('# T\n\nIt takes 1.5 s, or\nmore. Then it ends.\n').summary).toBe('It takes 1.5 s, or more.')
  })

  test('gives the links of its tables', () => {
    const markdown = new Markdown('# T\n\n## A\n\n| | |\n|-|-|\n| [b](b.md) | c |\n\n### B\n\nb *b*\n\n### C\n\n## D\n\nd\n')
    expect(markdown.tables()).toEqual([
      ['A', [['b', 'b.md']]],
      ['D', []],
    ])
  })
})
