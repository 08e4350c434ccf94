import type { Mutation } from './mutant.ts'

const check = 'leases: two nodes'
const atItsEnd = 'leases: a change of the interval'
const afterLoss = 'leases: a loss of data'

/** Mutations of the code that keeps the limit with leases: parts are left out or wrong. */
export const LEASES: readonly Mutation[] = [
  {
    name: 'the store grants what is asked for, whatever is left',
    file: 'store/leases/grant.ts',
    find: 'const reached = Math.min(ahead, most)',
    replace: 'const reached = ahead + 0 * most',
    check,
  },
  {
    name: 'the store takes back what an ask that comes late does not know of',
    file: 'store/leases/grant.ts',
    find: 'granted: Math.max(mine.granted, ask.granted),',
    replace: 'granted: ask.granted,',
    check,
  },
  {
    name: 'the store counts what comes back twice',
    file: 'store/leases/grant.ts',
    find: 'returned: Math.max(mine.returned, ask.returned),',
    replace: 'returned: mine.returned + ask.returned,',
    check,
  },
  {
    name: 'the store reckons with what was left before the ask',
    file: 'store/leases/grant.ts',
    find: 'const most = mine.returned + mine.cleared + outOf(mine) + room',
    replace: 'const most = mine.returned + mine.cleared + outOf(mine) + room + 1',
    check,
  },
  {
    name: 'a node adds what an answer says to what it has',
    file: 'store/leases/lease.ts',
    find: 'lease.granted = Math.max(lease.granted, granted)',
    replace: 'lease.granted += reply.granted + 0 * granted',
    check,
  },
  {
    name: 'a node believes an answer that comes late',
    file: 'store/leases/lease.ts',
    find: 'lease.granted = Math.max(lease.granted, granted)',
    replace: 'lease.granted = granted',
    check,
  },
  {
    name: 'a node goes on using what it says it gives back',
    file: 'store/leases/lease.ts',
    find: '    granted,\n    returned,\n    taken,\n    given,\n    cleared,\n    epoch,\n    least',
    replace:
      '    granted,\n    returned: returned + Math.max(0, heldOf(lease)),\n    taken,\n    given,\n    cleared,\n    epoch,\n    least',
    check,
  },
  {
    name: 'a node uses more than it holds',
    file: 'store/leases/lease.ts',
    find: 'if (heldOf(lease) < cost ||',
    replace: 'if (heldOf(lease) + 1 < cost ||',
    check,
  },
  {
    name: 'a lease begins when its ask was sent',
    file: 'store/leases/lease.ts',
    find: 'received + (1 + DRIFT)',
    replace: 'sent + (1 + DRIFT)',
    check: atItsEnd,
  },
  {
    name: 'a lease ends by when its answer came',
    file: 'store/leases/lease.ts',
    find: 'sent + (1 - DRIFT)',
    replace: 'received + (1 - DRIFT)',
    check: atItsEnd,
  },
  {
    name: 'a store that has lost what a node holds does not believe it',
    file: 'store/leases/grant.ts',
    find: 'granted: Math.max(mine.granted, ask.granted),',
    replace: 'granted: mine.granted + 0 * ask.granted,',
    check: afterLoss,
  },
  {
    name: 'a store that has lost what a node holds goes on granting',
    file: 'store/leases/grant.ts',
    find: 'if (lost) record.quietUntil = now + ask.lifetime',
    replace: 'if (lost) record.quietUntil = 0',
    check: afterLoss,
  },
]
