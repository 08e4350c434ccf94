/** Cases of the suite of express-rate-limit that can't apply to `expressRateLimitStore`, with the reason. Each behaves differently. */
export const EXCEPTIONS: Readonly<Record<string, string>> = {
  'the window of a key begins with its first hit': 'Windows begin at whole multiples of windowMs, for all keys at the same time.',
  'headers of the first request show the whole window':
    'Windows begin at whole multiples of windowMs, so that the first request of a key gets the time until the running window ends.',
  'hits above the limit are counted': 'Rejected requests are not counted, so that totalHits is at most limit + 1.',
  'limit may be a function': "The store can't call it. Pass the highest limit: expressRateLimitStore(store, { limit }).",
  'limit may be a function that returns a promise':
    "The store can't call it. Pass the highest limit: expressRateLimitStore(store, { limit }).",
  'a limit of 0 rejects each request': 'The store counts up to a limit of at least 1. Pass expressRateLimitStore(store, { limit: 1 }).',
  'a window of less than 30 ms is accepted': 'The shortest window is 30 ms.',
  'a store counts before init': 'The limit and the window come from the middleware, which calls init.',
  'a store counts after shutdown': 'shutdown closes the connection of all limits of the store. Make a new store to count again.',
}
