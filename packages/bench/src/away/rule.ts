/** Units per 10 s. */
export const LIMIT = 1000
/** Milliseconds that a request waits for the store at most. */
export const DEADLINE = 50
