import { POLICY } from '@weir/testing/store-tests/test-node'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { announcementsOf } from '../src/exchange/announcements.ts'
import { heartbeatOf } from '../src/exchange/heartbeat.ts'
import { PolicyList, PolicyNames } from '../src/exchange/policies.ts'
import { resultsOf } from '../src/exchange/results.ts'
import { Rows } from '../src/exchange/rows.ts'
import { escapeText, nameOf, unescapeText } from '../src/keys/keys.ts'

const names = new PolicyNames()
const cells = [{ ordinal: 1, taken: 1, given: 0 }] as never

test('of a reply that makes no sense each part fails alone', () => {
  const policies = [POLICY, { ...POLICY, id: 'w', cells: 4 }, { ...POLICY, id: 'b', drain: 1 }]
  const entries = policies.map((policy) => ({ policy, key: 'k', cells }))
  const { places } = new Rows(entries, new PolicyList(policies, names))
  const good = { xt: [5], xg: [0], wc: [[[1, 2, 0]]], bc: [[1, 2, 0, 2]] }
  expect(resultsOf(good, places, 0).map((result) => result?.cells[0]?.taken)).toEqual([5, 2, 2])
  fc.assert(
    fc.property(fc.constantFrom('xt', 'wc', 'bc'), fc.anything(), (part, nonsense) => {
      const results = resultsOf({ ...good, [part]: [nonsense] }, places, 0)
      const others = ['xt', 'wc', 'bc'].map((name, i) => name === part || results[i] !== undefined)
      expect(others).toEqual([true, true, true])
      for (const result of results) for (const cell of result?.cells ?? []) expect(cell.taken).toBeGreaterThanOrEqual(0)
    }),
  )
})

test('heartbeats and messages that make no sense are told apart', () => {
  const request = { ttl: 1, cursor: undefined, policies: [POLICY], leases: true, watch: true, rules: '' } as const
  const good = { nodes: 2, cursor: 7, blocks: [['fixed', 'k', 5, true, 0]] }
  fc.assert(
    fc.property(
      fc.constantFrom('blocks', 'hot', 'statuses', 'rules', 'leases', 'watched', 'ahead'),
      fc.array(fc.anything()),
      (part, nonsense) => {
        const { reply } = heartbeatOf({ ...good, [part]: nonsense }, request, '0', names, 0)
        expect([reply.nodes, reply.cursor]).toEqual([2, '7'])
      },
    ),
  )
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (nonsense) => {
      let heard: readonly unknown[] = []
      try {
        heard = announcementsOf(nonsense, 'n', names)
      } catch (error) {
        expect(error).toBeInstanceOf(Error)
      }
      expect(heard).toEqual([])
    }),
  )
})

test('any key comes back as it was, as printable ASCII, and no two get one name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 300 }), (a, b) => {
      expect(escapeText(a)).toMatch(/^[!-~]*$/)
      expect(unescapeText(escapeText(a))).toBe(a)
      if (a !== b) expect(nameOf(escapeText(a))).not.toBe(nameOf(escapeText(b)))
      expect(nameOf(escapeText(a)).length).toBeLessThanOrEqual(200)
    }),
  )
})
