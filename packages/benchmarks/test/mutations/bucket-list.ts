import type { Mutation } from './mutant.ts'

const METER = 'algorithms/bucket/background.ts'
const PACE = 'algorithms/bucket/pace.ts'
const ALONE = 'algorithms/bucket/alone.ts'
const HUB = 'hub/bucket-counts.ts'

/** The rules of buckets in a cluster, each switched off or got wrong. */
export const BUCKETS: readonly Mutation[] = [
  {
    name: 'the store takes units to have come with the exchange',
    file: HUB,
    find: 'groupAt(bucket, Math.min(sent.ordinal, running) as Ordinal, policy)',
    replace: 'groupAt(bucket, running, policy)',
    check: 'bucket: the store is never above what was admitted',
  },
  {
    name: 'the store forgets the level of before its groups',
    file: HUB,
    find: 'level: drainedBy(bucket.base, ordinal, policy) + taken - given }',
    replace: 'level: taken - given }',
    check: 'bucket: twice the limit',
  },
  {
    name: 'the store counts what comes too late',
    file: HUB,
    find: 'if (sent.ordinal <= bucket.base.ordinal || ',
    replace: 'if (',
    check: 'bucket: the store is never above what was admitted, late',
  },
  {
    name: 'a silence loses what was admitted in it',
    file: HUB,
    find: 'if (running < bucket.heldUntil) return',
    replace: '',
    check: 'bucket: twice the limit, outages',
  },
  {
    name: 'a full bucket is not announced',
    file: HUB,
    find: 'if (after > limit - 1 && (before <= limit - 1 || monotonic - bucket.announcedAt >= REPEAT_AFTER)) announce = true',
    replace: '',
    check: 'bucket: flood on a small limit',
  },
  {
    name: 'nothing is sent early',
    file: METER,
    find: 'if (unsent + cost >= due || key.hello)',
    replace: 'if (key.hello)',
    check: 'bucket: twice the limit',
  },
  {
    name: 'a key is open as soon as a unit fits',
    file: PACE,
    find: 'return Math.max(1, Math.min(most / 2, Math.max(0.1 * most, limit / 20)))',
    replace: 'return 0 * most + 0 * limit + 1',
    check: 'bucket: operations in a flood',
  },
  {
    name: 'what is held back is sent at each end of a span',
    file: METER,
    find: 'OLD * span * width) return true',
    replace: '0) return true',
    also: {
      file: METER,
      find: 'return unsent * this.exchange.nodes < LEAST_PART * most && this.#levels.at(slot, now) < most / 4',
      replace: 'return unsent === 0 || most < 0 || soon && since < 0 && width + interval + spans < 0',
    },
    check: 'bucket: operations of a quiet key',
  },
  {
    name: 'without the store a node decides by what it knows alone',
    file: ALONE,
    find: 'if (key.guess === undefined) this.#set(key, this.#levels.at(slot, now), now)',
    replace: 'this.#set(key, this.#levels.at(slot, now) - cost, now)',
    also: { file: ALONE, find: 'this.guess(key, slot, now) + units / this.#share(key), now)', replace: 'this.guess(key, slot, now), now)' },
    check: 'bucket: twice the limit, outages',
  },
]
