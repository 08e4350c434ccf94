import { expect, test } from 'vitest'
import { errorPages } from '../src/error-pages.js'

const TEXT = `# Errors

## Options

### WEIR_ONE

One. See [two](#weir_two), [options](options.md#a), [keys](../guides/keys.md), [Options](#options) and [out](https://x.test/a.md).

## Calls

### WEIR_TWO

Two.

\`\`\`js
a()
\`\`\`
`

test('each code has a page of its own, with what is said of it and links that lead where they led', () => {
  expect(errorPages(TEXT)).toEqual([
    {
      path: 'errors/weir_one.md',
      text: `# WEIR_ONE

One. See [two](weir_two.md), [options](../reference/options.md#a), [keys](../guides/keys.md), [Options](../reference/errors.md#options) and [out](https://x.test/a.md).

[All errors and warnings](../reference/errors.md#weir_one)
`,
    },
    {
      path: 'errors/weir_two.md',
      text: '# WEIR_TWO\n\nTwo.\n\n```js\na()\n```\n\n[All errors and warnings](../reference/errors.md#weir_two)\n',
    },
  ])
})
