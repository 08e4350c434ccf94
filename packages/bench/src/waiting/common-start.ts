/** Keys of Redis by which processes begin together: how many have started, and when they begin, by the wall clock. */
export const READY = 'bench:ready'
export const FROM = 'bench:from'
