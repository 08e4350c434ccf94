/** Keys of Redis with which processes start together: the number of started processes, and the common start, by the wall clock. */
export const READY = 'bench:ready'
export const FROM = 'bench:from'
