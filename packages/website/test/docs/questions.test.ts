import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { pages } from './pages.ts'

/** A part of a page, under one heading. */
interface Section {
  readonly path: string
  readonly heading: string
  readonly words: ReadonlyMap<string, number>
  readonly length: number
}

/** Words for a search: without endings, and without words that carry no meaning. */
function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(/[a-z]{2,}/g) ?? [])
    .filter((word) => !SILENT.has(word))
    .map((word) => word.replace(/(?:ing|ed|es|s)$/, ''))
}

const SILENT = new Set(
  'how do does is are was the an of in on to my me by with and or it its that this what which where who can for be as at from than there one have has not no without each other i'.split(
    ' ',
  ),
)

const index = pages().find(({ path }) => path === join('docs', 'README.md'))?.text ?? ''
const questions = [...index.matchAll(/^\| ([^|]+\?) \| \[[^\]]+\]\(([^)#]+)(?:#([^)]+))?\) \|$/gm)].map(
  ([, question = '', path = '', anchor]) => ({ question, path: join('docs', path), anchor }),
)

const sections: Section[] = pages()
  .filter(({ path }) => path.startsWith('docs') && !path.endsWith('README.md'))
  .flatMap(({ path, text }) => {
    const title = /^# (.*)/.exec(text)?.[1] ?? ''
    return text.split(/^(?=#+ )/m).map((part) => {
      const heading = /^#+ (.*)/.exec(part)?.[1] ?? title
      const words = wordsOf(`${`${title} ${heading} `.repeat(4)}${part}`)
      const counts = new Map<string, number>()
      for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
      return { path, heading, words: counts, length: words.length }
    })
  })

const meanLength = sections.reduce((sum, { length }) => sum + length, 0) / sections.length

/** The pages that a full-text search (BM25) finds, best first. */
function search(question: string): string[] {
  const asked = [...new Set(wordsOf(question))]
  const rare = new Map(
    asked.map((word) => {
      const having = sections.filter(({ words }) => words.has(word)).length
      return [word, Math.log(1 + (sections.length - having + 0.5) / (having + 0.5))]
    }),
  )
  const scored = sections.map(({ path, words, length }) => {
    const score = asked.reduce((sum, word) => {
      const count = words.get(word) ?? 0
      return sum + ((rare.get(word) ?? 0) * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * length) / meanLength))
    }, 0)
    return { path, score }
  })
  return [...new Set(scored.sort((a, b) => b.score - a.score).map(({ path }) => path))]
}

describe('questions of a newcomer', () => {
  test('are twenty at least, each once', () => {
    expect(questions.length).toBeGreaterThanOrEqual(20)
    expect(new Set(questions.map(({ question }) => question)).size).toBe(questions.length)
  })

  test.each(questions)('$question', ({ question, path }) => {
    // Most readers look only at the first three results.
    expect(search(question).slice(0, 3)).toContain(path)
  })
})
