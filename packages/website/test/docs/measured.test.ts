import { expect, test } from 'vitest'
import { agrees, faultOf, figuresOf, passagesOf } from './measured.ts'
import { type Page, pages } from './pages.ts'

/** Figures that no table has, because they are no measurements. */
const EXCEPTIONS: readonly (readonly [page: string, figure: string, why: string])[] = [
  ['docs/guides/comparison.md', '320 ns', 'a claim of another library'],
  ['docs/guides/costs.md', '10 MB', 'an example of a limit'],
  ['docs/guides/custom-algorithm.md', '8 bytes', 'the size of a number'],
  ['docs/guides/dashboard.md', '8 KB', 'a bound in the code'],
  ['docs/guides/etcd.md', '2 GB', 'a default of etcd'],
  ['docs/guides/etcd.md', '1.5 MB', 'a default of etcd'],
  ['docs/guides/etcd.md', '39 MB', 'arithmetic'],
  ['docs/guides/observability.md', '5 %', 'the threshold of an alert'],
  ['docs/guides/observability.md', '10 %', 'the threshold of an alert'],
  ['docs/guides/outgoing-calls.md', '4 MiB', 'a bound in the code'],
  ['docs/guides/redis.md', '198 MB', 'an example of the formula above it'],
  ['docs/guides/rules.md', '8,000,000 bytes', 'a bound in the code'],
  ['docs/guides/rules.md', '8 MB', 'a bound in the code'],
  ['docs/guides/rules.md', '1.5 MB', 'a default of etcd'],
  ['docs/reference/command-line.md', '1 %', 'a bound in the code'],
  ['docs/reference/command-line.md', '128 KiB', 'a bound in the code'],
  ['docs/reference/store-layout.md', '128 MB', 'a bound in the code'],
  ['docs/reference/store-layout.md', '1 GB', 'a bound in the code'],
  ['docs/reference/store-layout.md', '16 MB', 'a bound in the code'],
]

/** The marks of the README. They are here, because many read the README as plain text. */
const README = `
0.4 % = guides/accuracy.md#what-to-expect | 1,000 per 10 s | 12 | 1 ms | overshoot at ×1.1
3 % = guides/accuracy.md#what-to-expect | 1,000 per 10 s | 12 | 1 ms | overshoot at ×100
2.7 % = guides/accuracy.md#what-to-expect | 1,000 per 10 s | 12 | 1 ms | overshoot at ×100
60 requests = guides/small-limits.md#how-much-a-burst-gets | limit | 5 | 12 processes
99 KB = evidence/performance.md#bundle | Express adapter and redisStore() | gzip, bytes, at most
19 KB = evidence/performance.md#bundle | express-rate-limit | gzip, bytes, at most
15 KB = evidence/performance.md#bundle | @fastify/rate-limit | gzip, bytes, at most
18 KB = evidence/performance.md#bundle | rate-limiter-flexible | gzip, bytes, at most
`

const all = pages()
const passages = all
  .filter(({ path }) => !path.startsWith('docs/evidence/'))
  .flatMap((page) => passagesOf(page.path === 'README.md' ? withMarks(page, README) : page))

/** The page as one section, with all its marks at the end. */
function withMarks({ path, text }: Page, marks: string): Page {
  return { path, text: `${text.replace(/^#+ /gm, '')}\n<!-- measured${marks}-->\n` }
}

test('every marked figure equals the figure of its table', () => {
  const faults = passages.flatMap(({ page, marks }) =>
    marks.map((mark) => [page, faultOf(mark, all)] as const).filter(([, fault]) => fault !== undefined),
  )
  expect(faults).toEqual([])
})

test('every mark stands below its figure', () => {
  const lost = passages.flatMap(({ page, text, marks }) =>
    marks.filter(({ figure }) => !text.includes(figure)).map(({ figure }) => [page, figure]),
  )
  expect(lost).toEqual([])
})

test('every percentage, size and CPU time is marked, generated or an exception', () => {
  const unmarked = passages.flatMap((passage) => {
    const marked = new Set(passage.marks.map(({ figure }) => figure))
    return figuresOf(passage)
      .filter((figure) => !marked.has(figure))
      .map((figure) => `${passage.page}: ${figure}`)
  })
  expect(new Set(unmarked)).toEqual(new Set(EXCEPTIONS.map(([page, figure]) => `${page}: ${figure}`)))
})

test('every page of measurements names its commands and commits', () => {
  const measurements = all.filter(({ path }) => path.startsWith('docs/evidence/') && !path.endsWith('README.md'))
  // The figures of the page about speed are factors of techniques, each measured when it was tried.
  const without = measurements.filter(({ text }) => !/[Mm]easured by `npx -y pnpm [^`]+`[^.]* at commit `[0-9a-f]{8}`/.test(text))
  expect(without.map(({ path }) => path)).toEqual(['docs/evidence/speed.md'])
})

test('figures are compared by the digits that they show', () => {
  expect(agrees('3 %', '2.70 %', '')).toBe(true)
  expect(agrees('2.9 %', '2.70 %', '')).toBe(false)
  expect(agrees('99 KB', '99,072', 'gzip, bytes')).toBe(true)
  expect(agrees('77 KB', '99,072', 'gzip, bytes')).toBe(false)
  expect(agrees('0.5 %', '0.4 % (0.5 %)', '')).toBe(false)
})
