import { describe, expect, it, test } from 'vitest'
import { commentsOf, counted, EXCEPTIONS, missed, proseOf, texts } from '../src/words.js'

/** Joined here, because the check counts comments in tests too. */
const SLASHES = '/'.repeat(2)
const BLOCK = `/${'*'.repeat(2)}`
const GOOD = 'Each process counts its requests, and sends the counts to the store if a key gets near its limit. '
const countOf = (name: string, text: string) => counted(text).counts.find((count) => count.name === name)?.count

describe('the check of words', () => {
  it.each([
    ['what', 'The process sends what it counted. '],
    ['tell, say, ask, hear', 'The store is told and asked. '],
    ['nobody, somebody, whoever, whom', 'Nobody waits. '],
    ['hold', 'The key is held. '],
    ['those that, one that', 'The requests, and those that wait. '],
    ['semicolons', 'The request waits; then it is allowed. '],
  ])('rejects a text with too much of "%s", and names the command that shows it', (name, bad) => {
    expect(missed('core', GOOD.repeat(20))).toEqual([])
    expect(missed('core', bad + GOOD.repeat(5))).toEqual([expect.stringContaining(`contain "${name}"`)])
    expect(missed('core', bad + GOOD.repeat(5))[0]).toMatch(/`node packages\/tooling\/src\/words\.js core` shows them\.$/)
  })

  it('rejects guides that never address the reader, and leaves comments alone', () => {
    expect(missed('guides', GOOD)).toEqual([expect.stringMatching(/contain "you" 0 times\. .* at least 8\.$/)])
    expect(missed('guides', `${GOOD}If you lower the limit, your clients wait.`)).toEqual([])
    expect(missed('core', 'The limit of a key.')).toEqual([])
  })

  it('does not count names that others chose', () => {
    expect(countOf('tell, say, ask, hear', 'Cluster: a slot moves (ASK, MOVED)')).toBe(0)
    expect(countOf('tell, say, ask, hear', 'Libraries ask Redis')).toBe(1)
  })
})

describe('the text of a page', () => {
  it('contains paragraphs, headings, tables and the words of links', () => {
    expect(proseOf('## What it costs\n\n| what | [what](what.md) |\n|---|---|\n\nSee what.').match(/what/giu)).toHaveLength(4)
  })

  it('contains no code, comments or addresses', () => {
    expect(proseOf('```ts\nconst what = 1\n```\n`what` <!-- what --> <b what> https://what.example [a](what.md)')).not.toMatch(/what/)
  })
})

describe('the text of a source file', () => {
  it('contains line comments, comments behind code, and docstrings', () => {
    const source = `${SLASHES} told one\nconst a = 1 ${SLASHES} told two\n${BLOCK} told three */\n${BLOCK}\n * told four\n * @param {number} b told five\n */`
    expect(countOf('tell, say, ask, hear', commentsOf(source))).toBe(5)
  })

  it('contains no code, strings, code within comments, or names of parameters', () => {
    const source = `const told = 'told'\nask('https:${SLASHES}told.example')\n${SLASHES} calls \`told()\`\n${BLOCK} @param {string} told */`
    expect(countOf('tell, say, ask, hear', commentsOf(source))).toBe(0)
  })
})

test('the check reads documentation, READMEs, and comments of sources and tests', () => {
  const files = [...texts()].flatMap(([group, read]) => read.map(({ file }) => `${group}: ${file}`))
  expect(files).toEqual(
    expect.arrayContaining([
      'docs: docs/architecture.md',
      'guides: docs/guides/faq.md',
      'README: README.md',
      '.github: .github/SECURITY.md',
      'packages: packages/redis/README.md',
      'examples: examples/gateway/README.md',
      'core: packages/core/src/throttler/throttler.ts',
      'tooling: packages/tooling/test/words.test.ts',
      'tooling: packages/tooling/bin/check.js',
    ]),
  )
})

test('each exception is needed', () => {
  const all = [...texts().values()].flatMap((read) => read.map(({ text }) => text)).join('\n')
  for (const { found, reason } of EXCEPTIONS) expect(all.match(found), reason).not.toBeNull()
})
