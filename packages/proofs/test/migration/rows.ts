import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** A row of a table of the page. */
export interface Row {
  /** The names in code in the first column, without their arguments. */
  readonly left: ReadonlySet<string>
  readonly right: string
  readonly text: string
}

const PAGES = new URL('../../../../docs/migration/', import.meta.url)

/** The rows of a peer's table: the options in the page that is named after the peer. */
export function rowsOf(peer: string): Row[] {
  const isOwn = peer !== 'rate-limit-redis'
  const file = isOwn ? peer.replace('@', '').replace('/', '-') : 'express-rate-limit'
  const page = readFileSync(new URL(`${file}.md`, PAGES), 'utf8')
  const start = page.indexOf(`\n## ${isOwn ? 'Options' : peer}\n`)
  if (start < 0) throw new Error(`${file}.md has no table of ${peer}`)
  const end = page.indexOf('\n## ', start + 4)
  const section = page.slice(start, end < 0 ? undefined : end)
  return [...section.matchAll(/^\| (?!-)(.*?) \| (.*) \|$/gm)].slice(1).map(([text, first = '', right = '']) => {
    const names = [...first.matchAll(/`([^`]+)`/g)].map(([, code = '']) =>
      code.replace(/^(?:limiter|app|config)\.|^config: \{ /, '').replace(/[:( ,].*/, ''),
    )
    return { left: new Set(names), right, text }
  })
}

const require = createRequire(import.meta.url)

/** The place in which a peer declares its options: a file of its package or of its types, and the names of the types. */
const DECLARED: Readonly<Record<string, readonly [from: string, file: string, types: RegExp]>> = {
  'express-rate-limit': ['express-rate-limit', 'index.d.ts', /^Options$/],
  'rate-limit-redis': ['rate-limit-redis', 'index.d.ts', /Options$/],
  '@fastify/rate-limit': ['@fastify/rate-limit', 'types/index.d.ts', /^(CreateRateLimit|RateLimit|RateLimitPlugin)Options$/],
  '@nestjs/throttler': ['@nestjs/throttler', 'throttler-module-options.interface.d.ts', /^Throttler(Module)?Options$/],
  'koa-ratelimit': ['@types/koa-ratelimit/package.json', 'index.d.ts', /^MiddlewareOptions$/],
  'rate-limiter-flexible': [
    'rate-limiter-flexible',
    'types.d.ts',
    /^(I(?!RateLimiter(Mongo|Postgres|Dynamo|Valkey))RateLimiter\w*Options|IRLWrapper\w+Options|IRateLimiterQueueOpts)$/,
  ],
}

/** The options of a peer, from its types. */
export function optionsOf(peer: string): string[] {
  const [from, file, types] = DECLARED[peer] as readonly [string, string, RegExp]
  const source = readFileSync(join(dirname(require.resolve(from)), file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
  const options = new Set<string>()
  for (const { 1: name = '', index } of source.matchAll(/(?:interface|type) (\w+)/g)) {
    if (!types.test(name)) continue
    // A type that is composed of others has no members of its own.
    const [from] = /[;{]/.exec(source.slice(index)) ?? ''
    if (from !== '{') continue
    for (const option of membersOf(source.slice(source.indexOf('{', index)))) options.add(option)
  }
  return [...options]
}

/** Names of the members in the braces with which a text begins, without those in inner braces. */
function membersOf(text: string): string[] {
  const names: string[] = []
  let depth = 0
  let line = ''
  for (const letter of text) {
    if ('{(['.includes(letter)) depth++
    if ('})]'.includes(letter) && --depth === 0) break
    line += depth === 1 || letter === '(' ? letter : ''
    if (depth !== 1 || (letter !== '\n' && letter !== ';')) continue
    const name = /^[{\s}]*(?:readonly )?(\w+)\??[:(]/.exec(line)?.[1]
    if (name !== undefined) names.push(name)
    line = ''
  }
  return names
}
