/** Units per 10 s. */
export const LIMIT = 1000
/** The longest time that a request waits for the store, in milliseconds. */
export const DEADLINE = 50
