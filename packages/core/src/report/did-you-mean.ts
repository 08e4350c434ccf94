/**
 * Finds the option that an unknown one most likely stands for: the same letters except for one or two typing errors, the beginning of its
 * name, or its name in other libraries.
 */
export function nearest(option: string, options: Iterable<string>): string | undefined {
  const wanted = option.toLowerCase()
  const known = [...options].map((name) => ({ name, have: name.toLowerCase() }))
  const found =
    known.find(({ have }) => have === wanted || have === `${wanted}s` || `${have}s` === wanted) ??
    known.find(({ name }) => Object.hasOwn(ELSEWHERE, name) && ELSEWHERE[name]?.split(' ').includes(wanted)) ??
    known.find(({ have }) => wanted.length > 3 && within(1, wanted, have)) ??
    known.find(({ have }) => wanted.length > 3 && have.startsWith(wanted)) ??
    known.find(({ have }) => wanted.length > 7 && within(2, wanted, have))
  return found?.name
}

/** Whether at most `slips` letters are missing, extra, wrong or swapped with their neighbour. */
function within(slips: number, a: string, b: string): boolean {
  let at = 0
  while (at < a.length && a[at] === b[at]) at++
  const [x, y] = [a.slice(at), b.slice(at)]
  if (x === '' || y === '') return x.length + y.length <= slips
  const skip = (i: number, j: number): boolean => within(slips - 1, x.slice(i), y.slice(j))
  return slips > 0 && (skip(1, 1) || skip(1, 0) || skip(0, 1) || (x[0] === y[1] && x[1] === y[0] && skip(2, 2)))
}

/** The next step for an unknown option: the option that was meant, or Weir's replacement for it. Undefined if there is neither. */
export function meantBy(option: string, options: Iterable<string>): string | undefined {
  const near = nearest(option, options)
  if (near !== undefined) return `Did you mean "${near}"?`
  const wanted = option.toLowerCase()
  const use = Object.keys(INSTEAD).find((names) => names.split(' ').includes(wanted))
  return use === undefined ? undefined : INSTEAD[use]
}

/** The names that other libraries use for Weir's options, in lower case. One name may stand for options of several objects. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  limit: 'max points tokensperinterval intervalcap reservoir reservoirrefreshamount maxrequests requests threshold',
  interval: 'windowms duration period timewindow ttl reservoirrefreshinterval windowseconds windowsize per window',
  cooldown: 'blockduration ban inmemoryblockduration continueexceeding exponentialbackoff',
  delay: 'delayafter delayms maxdelayms',
  failMode: 'passonstoreerror skiponerror insurancelimiter',
  storeTimeout: 'timeout timeoutms',
  cost: 'weight points tokens',
  key: 'keygenerator gettracker generatekey groupid id',
  name: 'identifier',
  match: 'routes paths',
  policies: 'throttlers limiters rules limits',
  allow: 'allowlist whitelist',
  deny: 'blacklist denylist',
  skip: 'skipif ignoreuseragents',
  headers: 'standardheaders legacyheaders addheaders addheadersonexceeding setheaders disableheader enabledraftspec',
  sendRetryAfter: 'retryafter',
  message: 'errormessage errorresponsebuilder',
  throwOnReject: 'throw',
  onRejected: 'onexceeded onexceeding onlimitreached onbanreach',
  store: 'storeclient redis client db driver datastore connection clientoptions storage url',
  maxKeys: 'cache cachesize ephemeralcache',
  burst: 'capacity bucketsize',
  subWindows: 'buckets segments',
  maxWaiting: 'highwater maxqueue maxqueuesize',
  timeout: 'expiration maxwait commandtimeout connecttimeout',
  namespace: 'keyprefix prefix',
  shards: 'buckets partitions',
  schema: 'tablename table dbname',
  create: 'tablecreated migrate',
  endpoints: 'hosts host url urls',
  register: 'registry',
  labels: 'labelnames',
  attributes: 'labels',
  authorize: 'auth authenticate password',
}

/** Replacements for options of other libraries, by their names in lower case. */
const INSTEAD: Readonly<Record<string, string>> = {
  mintime: 'For one request each 100 ms use limit: 1, interval: "100ms", and algorithm: leakyBucket() to let requests wait.',
  'maxconcurrent concurrency': 'For requests at the same time use algorithm: concurrency().',
  'execevenly execevenlymindelayms strict smooth': 'For an even pace use algorithm: leakyBucket().',
  'burst capacity bucketsize': 'It is an option of the algorithm: tokenBucket({ burst: 20 }).',
  'keyprefix prefix namespace': 'It is an option of the store: redisStore(client, { namespace: "app" }).',
  'sendcommand storeclient redis client': 'Pass the client as first argument: redisStore(client).',
  resetexpiryonchange: 'For windows from the first request use algorithm: fixedWindow({ start: "first-request" }).',
  global: 'For routes without a limit use config: { throttle: false }.',
  highwater: 'Use queue: { maxWaiting: 100 }.',
  'validate requestpropertyname inmemoryblockonconsumed': 'Remove it: Weir has no such option.',
  'trustproxy trust': 'The framework reads addresses: in Express use app.set("trust proxy", 1).',
}
