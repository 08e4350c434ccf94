import type { Mutation } from './mutant.ts'

const TELLING = 'counting/bucket/telling.ts'
const METER = 'counting/bucket/background.ts'
const PACE = 'counting/bucket/pace.ts'
const ALONE = 'counting/bucket/alone.ts'
const OWN = 'counting/bucket/own-cells.ts'
const EARLY_DROP = 'counting/bucket/early-drop.ts'
const RESERVATIONS = 'counting/bucket/reservations.ts'
const CALL_SIZE = 'queue/call-size.ts'
const STORE = 'store/shapes/bucket-groups.ts'
const NEWS = 'store/shapes/bucket.ts'

/** The rules of buckets in a cluster, each of them left out or wrong. */
export const BUCKETS: readonly Mutation[] = [
  {
    name: 'the store takes units to have come with the exchange',
    file: STORE,
    find: 'groupAt(bucket, Math.min(sent.ordinal, running) as Ordinal, policy)',
    replace: 'groupAt(bucket, running, policy)',
    check: 'bucket: the store is never above what was allowed',
  },
  {
    name: 'the store forgets the level of before its groups',
    file: STORE,
    find: 'level: levelAt({ base, groups: [], floors: passed }, ordinal, policy) + taken - given }',
    replace: 'level: taken - given }',
    check: 'bucket: twice the limit',
  },
  {
    name: 'the store counts what comes too late',
    file: STORE,
    find: 'if (sent.ordinal <= bucket.base.ordinal || ',
    replace: 'if (',
    check: 'bucket: the store is never above what was allowed, late',
  },
  {
    name: 'a silence loses what was allowed in it',
    file: STORE,
    find: 'const held = running < bucket.heldUntil',
    replace: 'const held = false',
    check: 'bucket: twice the limit, outages',
  },
  {
    name: 'a full bucket is not announced',
    file: NEWS,
    find: 'if (after > limit - 1 && (before <= limit - 1 || monotonic - announced.announcedAt >= REPEAT_AFTER)) announce = true',
    replace: '',
    check: 'bucket: flood on a small limit',
  },
  {
    name: 'nothing is sent early',
    file: TELLING,
    find: 'if (unsent + cost >= due || key.hello)',
    replace: 'if (key.hello)',
    check: 'bucket: twice the limit',
  },
  {
    name: 'a key is open as soon as a unit fits',
    file: PACE,
    find: 'return Math.max(1, most <= FEW ? part : Math.min(most / 2, Math.max(part, limit / 20)))',
    replace: 'return 0 * FEW + 0 * part + 0 * limit + 1',
    check: 'bucket: operations in a flood',
  },
  {
    name: 'a bucket of few units stays closed until half of it is free',
    file: PACE,
    find: 'most <= FEW ? part : Math.min',
    replace: 'most < 0 * FEW ? part : Math.min',
    check: 'bucket: below a burst of ten',
  },
  {
    name: 'what is held back is sent at each end of a span',
    file: TELLING,
    find: 'OLD * span * width) return true',
    replace: '0) return true',
    also: {
      file: TELLING,
      find: 'return unsent * nodes < LEAST_PART * most && this.#records.levels.at(slot, now) < most / 4',
      replace: 'return unsent === 0 || most < 0 || soon && since < 0 && width + interval + spans < 0',
    },
    check: 'bucket: operations of a quiet key',
  },
  {
    name: 'without the store a node decides by what it knows alone',
    file: ALONE,
    find: 'if (count && key.guess === undefined) this.#set(key, guess, now)',
    replace: 'if (count) this.#set(key, this.#levels.at(slot, now) - cost, now)',
    also: {
      file: ALONE,
      find: 'this.guess(key, slot, now) + units / this.#share(key, slot), now)',
      replace: 'this.guess(key, slot, now), now)',
    },
    check: 'bucket: twice the limit, outages',
  },
  {
    name: 'units are taken to have come with all others of their group, though the bucket had run out',
    file: STORE,
    find: 'if (isWithin(BUCKET_PARTS) && levelAt(bucket, found.ordinal, policy) >= since * (policy.drain ?? 0)) return found',
    replace: 'if (isWithin(BUCKET_PARTS)) return found',
    also: { file: OWN, find: 'cell.level + cell.taken - cell.given >= since * drain', replace: 'cell.level + since * drain >= 0' },
    check: 'bucket: surges',
  },
  {
    name: 'what runs out meanwhile is not set against what others are likely to allow',
    file: PACE,
    find: 'const byOwn = (most - bare - ',
    replace: 'const byOwn = (most - level - ',
    check: 'bucket: operations below a small burst',
  },
  {
    name: 'a store that has lost its data is not told what is known',
    file: STORE,
    find: 'raise(bucket, cells, running, policy)\n',
    replace: '\n',
    check: 'bucket: lost data',
  },
  {
    name: 'what is known of lost data counts beside its units',
    file: STORE,
    find: 'bucket.floors = [{ ordinal, level }]',
    replace: 'groupAt(bucket, running, policy).taken += level',
    check: 'bucket: lost data',
  },
  {
    name: 'waiting: half of the level counts for a reservation',
    file: RESERVATIONS,
    find: 'drained(cell.level,',
    replace: 'drained(cell.level / 2,',
    check: 'bucket: a flood that waits',
  },
  {
    name: 'waiting: half of what is reserved is not counted ahead',
    file: RESERVATIONS,
    find: 'key.cells.add(meter.ordinal, units, level,',
    replace: 'key.cells.add(meter.ordinal, units / 2, level,',
    check: 'bucket: a flood that waits',
  },
  {
    name: 'waiting: a node reserves for all that wait with it',
    file: CALL_SIZE,
    find: 'const AHEAD_PART = 1 / 8',
    replace: 'const AHEAD_PART = 1',
    check: 'bucket: a flood that waits',
  },
  {
    name: 'early drop: what others allow meanwhile is not expected',
    file: METER,
    find: 'key.forecast.bare(now, drain) + key.forecast.others(now, drain))',
    replace: 'key.forecast.bare(now, drain))',
    check: 'bucket, early drop: far away',
  },
  {
    name: 'early drop: the bucket is let run full',
    file: EARLY_DROP,
    find: 'const TARGET = 0.8',
    replace: 'const TARGET = 1.2',
    check: 'bucket, early drop: far away',
  },
]
