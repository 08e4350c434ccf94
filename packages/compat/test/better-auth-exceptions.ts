/** Cases that `betterAuthStorage` can't pass, and the reason. */
export const EXCEPTIONS: Readonly<Record<string, string>> = {
  'each allowed request prolongs the window':
    'Windows begin at whole multiples of window, for all keys at the same time, and not with each allowed request.',
  'max 0 allows the first request of a window': 'A max of 0 rejects all requests.',
}
