import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from './pages.ts'

/** Declarations of options, and the section of the page that lists them. */
const DECLARED: readonly (readonly [section: string, file: string, name: string])[] = [
  ['Policy', 'packages/core/src/decide/policy.ts', 'interface PolicyOptions'],
  ['Policy', 'packages/core/src/decide/plans.ts', 'type PlannedPolicyOptions'],
  ['Cooldowns that grow', 'packages/core/src/decide/escalating.ts', 'interface EscalatingOptions'],
  ['calendar', 'packages/core/src/options/calendar.ts', 'interface CalendarOptions'],
  ['slidingWindow', 'packages/core/src/algorithms/sliding-window/index.ts', 'interface SlidingWindowOptions'],
  ['fixedWindow', 'packages/core/src/algorithms/fixed-window/index.ts', 'interface FixedWindowOptions'],
  ['tokenBucket', 'packages/core/src/algorithms/token-bucket/index.ts', 'interface TokenBucketOptions'],
  ['warmUp', 'packages/core/src/algorithms/token-bucket/index.ts', 'interface WarmUp'],
  ['leakyBucket', 'packages/core/src/algorithms/leaky-bucket/index.ts', 'interface LeakyBucketOptions'],
  ['concurrency', 'packages/core/src/algorithms/concurrency/index.ts', 'interface ConcurrencyOptions'],
  ['Throttler', 'packages/core/src/throttler/options.ts', 'interface ThrottlerOptions'],
  ['Snapshots', 'packages/core/src/inspect/snapshot.ts', 'interface SnapshotOptions'],
  ['Adapter', 'packages/core/src/http/adapter-options.ts', 'interface AdapterOptions'],
  ['Fastify', 'packages/fastify/src/options.ts', 'type ThrottleOptions'],
  ['Koa', 'packages/koa/src/throttle.ts', 'type ThrottleOptions'],
  ['Hono', 'packages/hono/src/throttle.ts', 'type ThrottleOptions'],
  ['Stores', 'packages/core/src/ipc/store.ts', 'interface IpcStoreOptions'],
  ['Stores', 'packages/core/src/ipc/serve.ts', 'interface ServeIpcOptions'],
  ['Stores', 'packages/redis/src/connection/options.ts', 'interface RedisStoreOptions'],
]
/** Rows without a declaration among these types. */
const BESIDE = ['throttler']

const page = readFileSync(join(ROOT, 'docs/reference/options.md'), 'utf8')

/** An option in its declaration. */
interface Declared {
  readonly option: string
  /** The value of the tag `@default`, if it is a value and not a description. */
  readonly preset: string | undefined
}

function declaredIn(file: string, name: string): Declared[] {
  const source = readFileSync(join(ROOT, file), 'utf8')
  const start = source.indexOf(`export ${name}`)
  if (start < 0) throw new Error(`${file} has no ${name}`)
  const body = source.slice(start, source.indexOf('\n}', start))
  return [...body.matchAll(/^ {2}(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n {2})?readonly (\w+)\??:/gm)].map(([, comment = '', option = '']) => {
    const preset = /@default `?('[^']+'|[\d._]+|true|false|\w+(?:\.\w+)?(?:\(\))?)`?(?=$|[,;]| with )/m.exec(comment)
    return { option, preset: preset?.[1]?.replaceAll(/['_]/g, '') }
  })
}

/** Rows of the tables under a heading: option → default. */
function rowsOf(section: string): Map<string, string> {
  const start = page.search(new RegExp(`^#+ ${section}$`, 'm'))
  if (start < 0) throw new Error(`The page has no section "${section}"`)
  const rest = page.slice(start + 4)
  const end = rest.search(/^#+ /m)
  const rows = (end < 0 ? rest : rest.slice(0, end)).matchAll(/^\| `(\w+)` \|([^|]*)\|/gm)
  return new Map([...rows].map(([, option = '', preset = '']) => [option, preset.replaceAll(/[`',]/g, '')]))
}

const sections = [...new Set(DECLARED.map(([section]) => section))]

describe.each(sections)('the options under "%s"', (section) => {
  const declared = DECLARED.filter(([name]) => name === section).flatMap(([, file, name]) => declaredIn(file, name))
  const rows = rowsOf(section)

  test('are those of the code', () => {
    const listed = [...rows.keys()].filter((option) => !BESIDE.includes(option))
    expect(new Set(listed)).toEqual(new Set(declared.map(({ option }) => option)))
  })

  test.each(declared.filter(({ preset }) => preset !== undefined))('$option has the default $preset', ({ option, preset }) => {
    expect(rows.get(option)).toContain(preset)
  })
})
