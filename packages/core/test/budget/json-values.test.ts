import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonValues } from '../../src/budget/json-values.ts'

function read(type: string, chunks: readonly Uint8Array[]): unknown[] | undefined {
  const values: unknown[] = []
  const reader = jsonValues(type, (value) => values.push(value))
  if (reader === undefined) return undefined
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return values
}

/** Bytes of a text, cut at some places. */
function cut(text: string, places: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text)
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, i) => bytes.slice(at[i], end))
}

const value = fc.record({ text: fc.string({ unit: 'binary', maxLength: 8 }), n: fc.nat() })
const places = fc.array(fc.nat(10_000), { maxLength: 12 })

test('events are read wherever the bytes are cut, even inside a character or a line end', () => {
  const event = fc.record({
    value,
    end: fc.constantFrom('\n', '\r\n', '\r'),
    head: fc.constantFrom('', 'event: x', ': comment', 'id: 1', 'retry:x', 'other', 'data: [DONE]\n\n'),
    lines: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 6 }), places, fc.boolean(), (events, at, isComplete) => {
      const texts = events.map(({ value, end, head, lines }) => {
        const json = JSON.stringify(value, undefined, lines ? 1 : 0).replaceAll('\n', '\ndata:')
        return `${head === '' ? '' : `${head}\n`}data: ${json}\n\n`.replaceAll('\n', end)
      })
      const body = texts.join('')
      const text = isComplete ? body : body.replace(/[\r\n]+$/, '')
      expect(read('text/event-stream; charset=utf-8', cut(`\ufeff${text}`, at))).toEqual(events.map((one) => one.value))
    }),
    { numRuns: 1_000 },
  )
})

test('a JSON body is read once it is complete', () => {
  fc.assert(
    fc.property(value, places, (one, at) => {
      expect(read('application/json', cut(JSON.stringify(one), at))).toEqual([one])
    }),
    { numRuns: 300 },
  )
  expect(read('application/problem+json;charset=utf-8', cut('{"a":1}', []))).toEqual([{ a: 1 }])
  expect(read('application/json', cut('{"a":', []))).toEqual([])
  expect(read('text/json', [])).toEqual([])
})

test.each(['text/html', 'application/jsonl', 'application/x-ndjson', 'text/event-streams', ''])('%j is not read', (type) => {
  expect(jsonValues(type, () => {})).toBeUndefined()
})

test('memory is bounded: a longer body is not parsed, and nothing is from a longer event on', () => {
  const blank = new Uint8Array(2 ** 20).fill(32)
  const ending = cut('{"a":1}', [])
  expect(read('application/json', [blank, blank, blank, ...ending])).toEqual([{ a: 1 }])
  expect(read('application/json', [blank, blank, blank, blank, ...ending])).toEqual([])
  const events = cut('data: {"a":1}\n\n', [])
  expect(read('text/event-stream', [...events, ...cut('data: ', []), blank, blank, blank, blank, ...cut('1\n\n', []), ...events])).toEqual([
    { a: 1 },
  ])
})

test('deeply nested JSON is read like any other', () => {
  const depth = 100_000
  expect(read('application/json', cut(`${'['.repeat(depth)}${']'.repeat(depth)}`, []))).toHaveLength(1)
})
