import assert from 'node:assert/strict'
import { type AuditLog, LONGEST_AUDITED, MOST_AUDITED } from '@weir/core/sync'
import type { ContractCase } from './case.ts'
import { type ContractNode, defined } from './context.ts'

/** Entries that are added at once. */
const AT_ONCE = 50

/** The log of manual actions. */
export const auditCases: readonly ContractCase[] = [
  {
    title: 'all processes see the actions of all, the newest one first',
    needs: ['audit'],
    async run(context) {
      const [a, b] = (await context.nodes(2)) as [ContractNode, ContractNode]
      const [first, second] = [await logOf(a), await logOf(b)]
      await context.eventually(async () => assert.deepEqual(await first.list(10), []))
      for (const [log, entry] of [
        [first, 'one'],
        [second, 'two'],
        [first, '{"three":"\\u0000 \\ud800 é 😀 % \\n\\t"}'],
      ] as const) {
        await context.eventually(() => log.add(entry))
        // A store may order entries by the millisecond.
        await context.pass(5)
      }
      for (const log of [first, second]) {
        assert.deepEqual(await log.list(10), ['{"three":"\\u0000 \\ud800 é 😀 % \\n\\t"}', 'two', 'one'])
        assert.deepEqual((await log.list(1)).length, 1)
      }
    },
  },
  {
    title: 'the log keeps the newest actions, however many and long they are',
    needs: ['audit'],
    async run(context) {
      const log = await logOf(await context.node())
      const entryOf = (at: number): string => `${at} `.padEnd(LONGEST_AUDITED, '漢')
      await context.eventually(() => log.add(entryOf(0)))
      const more = Array.from({ length: MOST_AUDITED + AT_ONCE - 2 }, (_, at) => entryOf(at + 1))
      // The first group is the one that must be gone. Within a group the order is open.
      const groups = [more.splice(0, AT_ONCE - 1)]
      while (more.length > 0) groups.push(more.splice(0, AT_ONCE))
      for (const group of groups) {
        await Promise.all(group.map((entry) => log.add(entry)))
        await context.pass(5)
      }
      await log.add('last')
      const entries = await log.list(MOST_AUDITED)
      assert.equal(entries.length, MOST_AUDITED)
      assert.equal(entries[0], 'last')
      assert.ok(entries.slice(1).every((entry) => entry.length === LONGEST_AUDITED))
      const places = entries.slice(1).map((entry) => Number.parseInt(entry, 10))
      assert.deepEqual(new Set(places), new Set(places.map((_, at) => AT_ONCE + at)))
    },
  },
]

async function logOf(node: ContractNode): Promise<AuditLog> {
  return await defined(node.connection.audit).call(node.connection)
}
