import { existsSync, writeSync } from 'node:fs'
import { createThrottler, type Decision, leakyBucket, limitedFetch, type Store, systemClock, type Throttler } from '@weir/core'
import { adapterOf, createGuard } from '@weir/core/adapter'
import { auditLog, recordAction } from '@weir/core/inspect'
import { follow, type RulesSource } from '@weir/core/rules'

/** The store that a separate process connects to, and the rules in it, if it stores rules. */
export interface Place {
  readonly store: Store
  readonly rules?: (RulesSource & { close(): void }) | undefined
}

/** The state of a throttler before the awaited call. */
type Ready = (throttler?: Throttler) => Promise<void>
export type Case = (place: Place, ready: Ready) => Promise<unknown>

const [name = '', address = '', patience, goOn] = process.argv.slice(2)
/** Milliseconds that each call waits for the store. */
const PATIENCE = Number(patience)

/** Policies by name, with their options. Without the store they reject, so that tests notice which side decided. */
const POLICIES = {
  background: { coordination: 'background' },
  central: { coordination: 'central', failMode: 'closed', storeTimeout: PATIENCE },
  leased: { coordination: 'leased', failMode: 'closed', storeTimeout: PATIENCE },
  held: { algorithm: leakyBucket(), coordination: 'central', failMode: 'closed', storeTimeout: PATIENCE },
  waiting: { coordination: 'local', limit: 1, interval: '1s', delay: '5s' },
} as const

const RULE = { key: 'ip', limit: 10, interval: '1h' } as const

function throttlerOf({ store }: Place, kind: Kind): Throttler {
  const policies = [{ ...RULE, name: kind, ...POLICIES[kind] }]
  return createThrottler({ policies: policies as never, store, closeTimeout: PATIENCE }) as unknown as Throttler
}

const told = (decision: { readonly allowed: boolean } | null | undefined): string =>
  decision === undefined || decision === null ? 'passed' : decision.allowed ? 'allowed' : 'rejected'

/** The length of a pause, in milliseconds. */
const PAUSE = 2_000

type Kind = keyof typeof POLICIES
const BACKGROUND_AND_ASKING: readonly Kind[] = ['background', 'central', 'leased']

/** A case for some kinds of policies. */
function each(name: string, kinds: readonly Kind[], run: (throttler: Throttler) => Promise<unknown>): [string, Case][] {
  return kinds.map((kind) => [
    `${name}, ${kind}`,
    async (place, ready) => {
      const throttler = throttlerOf(place, kind)
      await ready(throttler)
      return run(throttler)
    },
  ])
}

/** A case for a store's rules. It is undefined if the store has none. */
function ofRules(name: string, run: (rules: Required<RulesSource>) => Promise<unknown>): [string, Case] {
  return [
    name,
    async ({ rules }, ready) => {
      if (rules === undefined) return 'none'
      await ready()
      return run(rules as unknown as Required<RulesSource>)
    },
  ]
}

/** A decision with a delay. */
function slow(decision: Decision): Decision {
  return Object.create(decision, { delayMs: { value: 50 } })
}

const never = (): Promise<never> => new Promise(() => {})
const WHOLE = JSON.stringify({ version: 1, policies: [{ name: 'all', key: 'all', limit: 5, interval: '1h' }] })

/** All promises that a process may await, each of them alone. */
export const AWAITED: ReadonlyMap<string, Case> = new Map([
  ...each('checkAsync', [...BACKGROUND_AND_ASKING, 'held'], async (throttler) => told(await throttler.checkAsync('a'))),
  ...each('decideAsync', ['central'], async (throttler) => told(await adapterOf(throttler).decideAsync(['a'], [1]))),
  ...each('checkAsync', ['waiting'], async (throttler) => {
    await throttler.checkAsync('a')
    return told(await throttler.checkAsync('a'))
  }),
  ...each('acquire', ['waiting'], async (throttler) => {
    await throttler.acquire('a')
    return told(await throttler.acquire('a', { timeout: '5s' }))
  }),
  ...each('acquire', BACKGROUND_AND_ASKING, async (throttler) => told(await throttler.acquire('a', { timeout: PATIENCE }))),
  ...each('tryAcquire', BACKGROUND_AND_ASKING, async (throttler) => told(await throttler.tryAcquire('a', { timeout: PATIENCE }))),
  ...each('reserveAsync', BACKGROUND_AND_ASKING, async (throttler) => {
    const receipt = await throttler.reserveAsync('a', { cost: { [throttler.policies[0]?.name ?? '']: 1 } })
    return told(receipt)
  }),
  ...each('schedule', ['central'], (throttler) => throttler.schedule('a', () => 'ran', { timeout: PATIENCE })),
  ...each('wrap', ['central'], (throttler) => throttler.wrap(() => 'ran', { key: 'a', timeout: PATIENCE })()),
  ...each('limitedFetch', ['central'], async (throttler) => {
    const request = limitedFetch(throttler, { timeout: PATIENCE, fetch: async () => new Response('ran') })
    return (await request('http://127.0.0.1:9/')).text()
  }),
  ...each('usage', BACKGROUND_AND_ASKING, async (throttler) => (await throttler.usage('a', { timeout: PATIENCE }))[0]?.source),
  ...each('flush', ['background', 'central'], async (throttler) => String(await throttler.start().flush({ timeout: PATIENCE }))),
  ...each('waitFor', ['held'], async (throttler) => told(await throttler.waitFor(slow(await throttler.checkAsync('a'))))),
  ...each('close', BACKGROUND_AND_ASKING, async (throttler) => {
    await throttler.start().close()
    return throttler.state
  }),
  // The pause is longer than a store may take to answer, so calls to a hung store follow each other without a gap.
  ...each('a pause', ['background'], async (throttler) => {
    throttler.check('a')
    await new Promise((resolve) => setTimeout(resolve, PAUSE))
    return 'over'
  }),
  ...each('guard', ['central'], async (throttler) => {
    const guard = createGuard<object, readonly [], string>(throttler as never, READER)
    return told(await guard.check({}))
  }),
  [
    'a function that never answers',
    async ({ store }, ready) => {
      await ready()
      const guard = createGuard<object, readonly [], string>({ ...RULE, key: never, store, callbackTimeout: PATIENCE } as never, READER)
      guard.throttler.on('warning', () => {})
      return told(await guard.check({}))
    },
  ],
  [
    'a look with a function that never answers',
    async ({ store }, ready) => {
      await ready()
      const guard = createGuard<object, readonly [], string>({ ...RULE, key: never, store, callbackTimeout: 300 } as never, READER)
      guard.throttler.on('warning', () => {})
      return told(await guard.peek({}))
    },
  ],
  [
    'a rejection that never gets its text',
    async ({ store }, ready) => {
      await ready()
      const guard = createGuard<object, readonly [], string>(
        { ...RULE, key: 'all', message: never, store, callbackTimeout: PATIENCE } as never,
        READER,
      )
      guard.throttler.on('warning', () => {})
      return (await guard.reject({}, guard.throttler.check('a'))).status
    },
  ],
  [
    'a handler that never answers',
    async ({ store }, ready) => {
      await ready()
      const guard = createGuard<object, readonly [], string>(
        { ...RULE, key: 'all', handler: never, store, callbackTimeout: PATIENCE } as never,
        READER,
      )
      guard.throttler.on('warning', () => {})
      const rejection = await guard.reject({}, guard.throttler.check('a'))
      return guard.handle(rejection, [], { headersSent: false, on() {} } as never)
    },
  ],
  ofRules('rules: read', async (rules) => (await rules.read(new AbortController().signal)) ?? 'nothing'),
  ofRules('rules: history', async (rules) => (await rules.history(5)).length),
  ofRules('rules: replace', (rules) => rules.replace('what it never held', WHOLE)),
  ofRules('followed rules: ready', async (rules) => {
    const followed = followedBy(throttlerAlone(), rules)
    await followed.ready
    return followed.status.away === undefined ? 'read' : 'away'
  }),
  ofRules('followed rules: versions', async (rules) => {
    const throttler = throttlerAlone()
    followedBy(throttler, rules)
    return (await adapterOf(throttler).inspected.followed?.versions())?.length
  }),
  ofRules('followed rules: close', async (rules) => {
    await followedBy(throttlerAlone(), rules).close()
    return 'closed'
  }),
  [
    'an exchange',
    async ({ store }, ready) => {
      await ready()
      const connection = store.open({ id: 'one', clock: systemClock, announced: () => {} })
      await connection.sync({ entries: [], blocks: [] })
      return 'answered'
    },
  ],
  ...each('auditLog', ['background'], async (throttler) => {
    throttler.start()
    await auditLog(throttler)
    return 'read'
  }),
  ...each('recordAction', ['background'], async (throttler) => {
    throttler.on('warning', () => {})
    throttler.start()
    await recordAction(throttler, { action: 'block', key: 'a' })
    return 'done'
  }),
  [
    'the audit log of a store',
    async ({ store }, ready) => {
      await ready()
      const log = await store.open({ id: 'one', clock: systemClock, announced: () => {} }).audit?.()
      await log?.add('an entry')
      await log?.list(1)
      return 'answered'
    },
  ],
  [
    'what asks for decisions, and the end of a connection',
    async ({ store }, ready) => {
      await ready()
      const connection = store.open({ id: 'one', clock: systemClock, announced: () => {} })
      await connection.decider?.()
      await connection.close()
      return 'closed'
    },
  ],
])

/** A reader of empty requests. */
const READER = {
  method: () => 'GET',
  path: () => '/',
  route: () => '/',
  ip: () => '127.0.0.1',
  header: () => undefined,
}

function throttlerAlone(): Throttler {
  return createThrottler({ policies: [{ ...RULE }] }) as unknown as Throttler
}

function followedBy(throttler: Throttler, rules: RulesSource) {
  throttler.on('warning', () => {})
  return follow(throttler, rules, { timeout: PATIENCE })
}

/** Milliseconds between two checks whether the store has answered. */
const SOON = 5

/**
 * Awaits one promise in a process that does nothing else, and prints the result. If a file is named, the store answers first. The
 * parent creates the file after it has changed the state of the store.
 */
export async function awaitOne(
  placeAt: (address: string, patience: number) => Place,
  cases: ReadonlyMap<string, Case> = AWAITED,
): Promise<void> {
  const place = placeAt(address, PATIENCE)
  let begun = performance.now()
  const ready: Ready = async (throttler) => {
    if (goOn === undefined) return
    throttler?.start()
    // These timers keep the process alive until it is synced.
    while (throttler !== undefined && throttler.state !== 'synced') await new Promise((resolve) => setTimeout(resolve, SOON))
    writeSync(1, 'ready\n')
    // This wait uses no timer and no handle, so that the next promise is alone.
    while (!existsSync(goOn)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SOON)
    // Other processes were starting until then.
    begun = performance.now()
  }
  let outcome: unknown
  try {
    outcome = await cases.get(name)?.(place, ready)
  } catch (error) {
    const { reason, code } = error as { readonly reason?: string; readonly code?: string }
    outcome = reason ?? code ?? String(error)
  }
  writeSync(1, JSON.stringify({ outcome, took: performance.now() - begun }))
}
