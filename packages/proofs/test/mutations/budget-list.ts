import type { Mutation } from './mutant.ts'

const check = 'budgets: a crash'
const more = 'budgets: a call that uses more'

/** Mutations of the code that settles reservations of leased units: parts are left out or wrong. */
export const BUDGETS: readonly Mutation[] = [
  {
    name: 'a process uses units again that the store may have returned',
    file: 'store/leases/lease.ts',
    find: 'if (due !== units && used < units) lease.returned += units - used',
    replace: '',
    check,
  },
  {
    name: 'the store settles the reservations of a live process for good',
    file: 'store/leases/grant.ts',
    find: 'change(record, mine, { back: 0, more: 0 })',
    replace: '',
    check,
  },
  {
    name: 'the store keeps reservations that their process has settled',
    file: 'store/leases/grant.ts',
    find: 'mine.open = ask.open ?? []',
    replace: 'mine.open = ask.open ?? mine.open',
    check,
  },
  {
    name: 'the store never settles the reservations of a dead process',
    file: 'store/leases/grant.ts',
    find: 'if (one.due > now) continue',
    replace: 'continue',
    check,
  },
  {
    name: 'the store forgets use beyond the reserved units',
    file: 'store/leases/grant.ts',
    find: 'more += Math.max(0, -one.back)',
    replace: '',
    check: more,
  },
]
