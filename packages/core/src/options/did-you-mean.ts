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
    known.find(({ have }) => wanted.length > 3 && slips(wanted, have) <= (wanted.length > 7 ? 2 : 1))
  return found?.name
}

/** How many letters are missing, too many, wrong or swapped with their neighbour (optimal string alignment). */
function slips(a: string, b: string): number {
  let older: number[] = []
  let before = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      let least = Math.min((before[j] as number) + 1, (row[j - 1] as number) + 1, (before[j - 1] as number) + same)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (older[j - 2] as number) + 1)
      row.push(least)
    }
    older = before
    before = row
  }
  return before[b.length] as number
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
