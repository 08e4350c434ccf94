import { attack } from '../harness/attack.ts'
import { HOSTILE_VALUES, pathsOf, replaced, withTime } from '../harness/mutate.ts'
import { ruleOf } from '../harness/rule.ts'

const LIMIT = 5
interface Args {
  readonly window: string
}
interface Found {
  readonly allowed: number
  readonly state: string
  readonly odd: string
}

const KINDS = [
  ...[
    'each part replaced',
    'undefined',
    'null',
    'a text',
    'an empty object',
    'empty lists',
    'NaN everywhere',
    'negative numbers',
    'throws',
  ],
  ...['never', 'rejects with undefined', 'a thenable', 'a trap', 'nonsense announced'],
] as const
type Kind = (typeof KINDS)[number]

/** Makes a user's own store reply nonsense. The process must stay up, apply the limit by its own counts, and sync again later. */
export const lyingStore = attack<Args>({
  name: 'lying-store',
  targets: ['core'],

  async victim({ args: { window } }) {
    const { createThrottler, memoryStore } = await import('@weir/core')
    const { backgroundStore } = await import('@weir/core/sync')
    const answer = async (kind: Kind): Promise<Found> => {
      const inner = memoryStore()
      let lies = true
      let asked = 0
      const store = backgroundStore({
        kind: 'lying',
        open(node: Parameters<typeof inner.open>[0]) {
          const connection = inner.open(node)
          return {
            sync: (request: Parameters<typeof connection.sync>[0]) => {
              if (kind === 'nonsense announced' && lies) for (const value of HOSTILE_VALUES) announce(node.announced, value)
              return lies ? (lie(kind, () => connection.sync(request), asked++) as never) : connection.sync(request)
            },
            close: () => connection.close(),
          }
        },
      })
      const policy = { limit: LIMIT, interval: '1h', ...(await ruleOf(window)) } as never
      const throttler = createThrottler({ policies: [policy], store, heartbeat: 100 }).start()
      let allowed = 0
      const odd = new Set<string>()
      for (let round = 0; round < 25; round++) {
        for (let i = 0; i < 4; i++) {
          const decision = throttler.check('k')
          if (decision.allowed) allowed++
          for (const name of ['limit', 'remaining', 'resetAfterMs', 'cost'] as const)
            if (!(decision[name] >= 0)) odd.add(`${name} ${decision[name]}`)
        }
        await new Promise((resolve) => setTimeout(resolve, 15))
      }
      lies = false
      for (let i = 0; i < 150 && throttler.state !== 'synced'; i++) await new Promise((resolve) => setTimeout(resolve, 20))
      const { state } = throttler
      await throttler.close()
      return { allowed, state, odd: [...odd].join(' ') }
    }
    return { answer: answer as never }
  },

  async run({ start, result }) {
    for (const window of ['fixed', 'sliding']) {
      const victim = await start({ window })
      await Promise.all(
        KINDS.map(async (kind) => {
          const found = await victim.ask<Found>(kind).catch((error: Error) => error.message.split('\n')[0])
          if (typeof found !== 'object') {
            // Repeats this kind alone, to find the kind that ended the process.
            const own = await start({ window })
            const again = await own.ask<Found>(kind).catch(() => undefined)
            await new Promise((resolve) => setTimeout(resolve, 50))
            result(`${kind}, ${window}`, own.up && again !== undefined && fine(kind, again), own.up ? text(again) : own.ended)
            await own.kill()
          } else result(`${kind}, ${window}`, fine(kind, found), text(found))
        }),
      )
      await victim.kill()
    }
  },
})

/** Whether Weir withstood it. A store that never settles a sync need not be synced again, because nothing shows when it would reply. */
const fine = (kind: Kind, { allowed, state, odd }: Found): boolean =>
  // A replaced part may be a plausible count, which Weir uses.
  (kind === 'each part replaced' ? allowed <= LIMIT : allowed === LIMIT) && (state === 'synced' || kind === 'never') && odd === ''
const text = (found: Found | undefined): string =>
  found === undefined ? 'no answer' : `${found.allowed} of limit ${LIMIT}, ${found.state} ${found.odd}`

function announce(announced: (announcement: never) => void, value: unknown): void {
  for (const sample of [
    value,
    { type: value },
    { type: 'total', policyId: value, key: 'k', cells: value },
    { type: 'block', policyId: value, key: value, remaining: value },
  ])
    announced(sample as never)
}

function lie(kind: Kind, ask: () => Promise<unknown>, asked: number): unknown {
  const numbers = (value: unknown, by: (number: number) => number): unknown => {
    if (typeof value === 'number') return by(value)
    if (Array.isArray(value)) return value.map((part) => numbers(part, by))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, numbers(part, by)]))
  }
  if (kind === 'throws') throw new Error('at once')
  switch (kind) {
    case 'each part replaced':
      return ask().then((reply) => {
        const paths = pathsOf(reply)
        const lie = replaced(reply, paths[asked % paths.length] ?? [], HOSTILE_VALUES[(asked * 7) % HOSTILE_VALUES.length])
        return withTime(lie, reply as { readonly time: number })
      })
    case 'undefined':
      return undefined
    case 'null':
      return Promise.resolve(null)
    case 'a text':
      return Promise.resolve('OK')
    case 'an empty object':
      return Promise.resolve({})
    case 'empty lists':
      return Promise.resolve({ time: Date.now(), results: [], blocks: [], heartbeat: { blocks: [], hot: [] } })
    case 'NaN everywhere':
      return ask().then((reply) => numbers(reply, () => Number.NaN))
    case 'negative numbers':
      return ask().then((reply) => numbers(reply, (number) => -number))
    case 'never':
      return new Promise(() => {})
    case 'rejects with undefined':
      return Promise.reject()
    case 'a thenable':
      // biome-ignore lint/suspicious/noThenProperty: that is the attack
      return { then: (_: unknown, rejected: (error: unknown) => void) => rejected(7) }
    case 'a trap':
      return Promise.resolve(
        new Proxy(
          {},
          {
            get(_, name) {
              if (name === 'then') return undefined
              throw new Error('a trap')
            },
          },
        ),
      )
    case 'nonsense announced':
      return ask()
  }
}
