import { describe, expect, it } from 'vitest'
import { compareCounts, lowered, vagueComments } from '../src/comments.js'

/** Joined here, so that the check does not count these examples. */
const SLASHES = '/'.repeat(2)
const BLOCK = `/${'*'.repeat(2)}`

describe('the check of comments', () => {
  it.each([
    ['a line', `${SLASHES} What is left.`],
    ['a comment behind code', `const a = 1 ${SLASHES} Of the last interval.`],
    ['a block of one line', `  ${BLOCK} Who waits now. */`],
    ['the first line of a longer block', `${BLOCK}\n * Whoever asks is told.\n */`],
    ['a later paragraph of a block', `${BLOCK}\n * Units that are left.\n *\n * What counts is another matter.\n */`],
    ['a plain block', `const f = (${BLOCK.slice(0, 2)} What it is. */ a) => a`],
    ['a comment behind code after another one', `const a = 1 ${SLASHES} One.\nconst b = 1 ${SLASHES} Of the last interval.`],
  ])('finds %s', (_name, source) => {
    expect(vagueComments(source)).toHaveLength(1)
  })

  it.each([
    ['a line that goes on with a comment', `${SLASHES} Units of this process, and\n${SLASHES} What it got.`],
    ['a line of a block that goes on with a sentence', `${BLOCK}\n * Units of this process, and\n * Of the others.\n */`],
    ['a word that only begins like one of these', `${SLASHES} Whole units. Often enough. Offset of it.`],
    ['an address', "const url = 'https://Who.example'"],
    ['code', 'const What = Of'],
  ])('leaves %s alone', (_name, source) => {
    expect(vagueComments(source)).toEqual([])
  })

  it('names the line', () => {
    expect(vagueComments(`const a = 1\n\n${SLASHES} Of both.`)).toEqual([{ line: 3, text: 'Of both.' }])
  })
})

describe('the counts of packages', () => {
  it('may be as the list says', () => {
    expect(compareCounts({ core: 3, redis: 0 }, { core: 3 })).toEqual([])
  })

  it('must not go up, and a lower one is written down', () => {
    expect(compareCounts({ core: 4, redis: 1, koa: 0 }, { core: 3, redis: 2, koa: 1 })).toEqual([
      expect.stringMatching(/^"core" has 4 comments .* The list allows 3\. Begin new ones with a noun or a verb\./),
      expect.stringMatching(/^"koa" has 0 .* --lower` lowers it\.$/),
      expect.stringMatching(/^"redis" has 1 .* --lower` lowers it\.$/),
    ])
  })

  it('are lowered where they went down, and never raised', () => {
    expect(lowered({ core: 4, redis: 1, koa: 0, new: 2 }, { core: 3, redis: 2, koa: 1 })).toEqual({ core: 3, redis: 1 })
  })
})
