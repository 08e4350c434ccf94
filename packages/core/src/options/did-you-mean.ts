/**
 * The option that an unknown one was most likely meant to be: the same letters but for a typing slip or two, its beginning,
 * or what other libraries call it.
 */
export function nearest(option: string, options: Iterable<string>): string | undefined {
  const wanted = option.toLowerCase()
  const known = [...options].map((name) => ({ name, have: name.toLowerCase() }))
  const meant = Object.keys(ELSEWHERE).find((name) => ELSEWHERE[name]?.split(' ').includes(wanted))
  const found =
    known.find(({ have }) => have === wanted || have === `${wanted}s` || `${have}s` === wanted) ??
    known.find(({ name }) => name === meant) ??
    known.find(({ have }) => wanted.length > 3 && have.startsWith(wanted)) ??
    known.find(({ have }) => wanted.length > 3 && within(wanted.length > 7 ? 2 : 1, wanted, have))
  return found?.name
}

/** Whether at most so many letters are missing, too many, wrong or swapped with their neighbour. */
function within(slips: number, a: string, b: string): boolean {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  const [x, y] = [a.slice(at), b.slice(at)]
  if (x === '' || y === '') return x.length + y.length <= slips
  const skip = (i: number, j: number): boolean => within(slips - 1, x.slice(i), y.slice(j))
  return slips > 0 && (skip(1, 1) || skip(1, 0) || skip(0, 1) || (x[0] === y[1] && x[1] === y[0] && skip(2, 2)))
}

/** What other libraries call ours, in lower case. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  limit: 'max points',
  interval: 'windowms duration period timewindow ttl',
  cooldown: 'blockduration ban',
  key: 'keygenerator gettracker id',
  name: 'identifier',
  allow: 'allowlist whitelist',
  deny: 'blacklist denylist',
  skip: 'skipif',
  headers: 'standardheaders legacyheaders addheaders disableheader',
  message: 'errormessage errorresponsebuilder',
  onThrottled: 'onexceeded onlimitreached',
  store: 'storeclient redis client db',
}
