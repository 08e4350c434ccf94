import type { Mutation } from './mutant.ts'

const silence = 'slots: silence'
const busy = 'slots: silence of a busy node'

/** Mutations of the code that keeps the limit of requests in flight over all processes: parts are left out or wrong. */
export const SLOTS: readonly Mutation[] = [
  {
    name: 'a node begins more requests than it has slots',
    file: 'store/leases/lease.ts',
    find: 'if (heldOf(lease) < cost ||',
    replace: 'if (heldOf(lease) + 1 < cost ||',
    check: 'slots: two nodes',
  },
  {
    name: 'a node goes on using slots that it says it gives back',
    file: 'store/leases/lease.ts',
    find: '    granted,\n    returned,\n    taken,\n    given,\n    cleared,\n    epoch,\n    least',
    replace:
      '    granted,\n    returned: returned + Math.max(0, heldOf(lease)),\n    taken,\n    given,\n    cleared,\n    epoch,\n    least',
    check: 'slots: two nodes',
  },
  {
    name: 'a lease lives on by an answer to an ask that was under way for too long',
    file: 'store/leases/lease.ts',
    find: '(ask.seq <= lease.heard || isOver(lease, received))',
    replace: 'ask.seq <= lease.heard',
    check: silence,
  },
  {
    name: 'a node believes an answer that was overtaken',
    file: 'store/leases/lease.ts',
    find: '(ask.seq <= lease.heard || isOver(lease, received))',
    replace: 'isOver(lease, received)',
    check: silence,
  },
  {
    name: 'a lease lives on from when its answer came',
    file: 'store/leases/lease.ts',
    find: 'sent + (1 - DRIFT)',
    replace: 'received + (1 - DRIFT)',
    check: silence,
  },
  {
    name: 'a lease that is over is used',
    file: 'store/leases/lease.ts',
    find: 'if (heldOf(lease) < cost || now < lease.from || now >= lease.until)',
    replace: 'if (heldOf(lease) < cost || now < lease.from || now > lease.until + 1)',
    check: busy,
  },
  {
    name: 'a node that was silent for too long keeps its slots',
    file: 'store/leases/lease.ts',
    find: '  next.taken = lease.taken - lease.given\n',
    replace: '  next.taken = lease.taken - lease.given\n  next.granted = lease.granted - lease.returned\n',
    check: busy,
  },
  {
    name: 'a node that was silent for too long forgets what runs',
    file: 'store/leases/lease.ts',
    find: '  next.taken = lease.taken - lease.given\n',
    replace: '',
    check: busy,
  },
  {
    name: 'the store waits too short a time for a node',
    file: 'store/leases/grant.ts',
    find: 'mine.until = now + ask.lifetime',
    replace: 'mine.until = now + ask.lifetime / 2',
    check: busy,
  },
  {
    name: 'the store never stops waiting for a node',
    file: 'store/leases/grant.ts',
    find: 'if (now >= record.earliest) forgetSilent(record, now)',
    replace: 'if (now < 0) forgetSilent(record, now)',
    check: 'slots: a crash',
  },
  {
    name: 'the store does not count what runs without a slot',
    file: 'store/leases/grant.ts',
    find: 'Math.max(granted - returned, taken - given + more) - back - cleared)',
    replace: 'granted - returned - cleared + 0 * (taken - given))',
    check: busy,
  },
]
