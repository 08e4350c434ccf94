import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { shortenLua } from '@weir/tooling/lua'
import {
  type BuildOptions,
  build,
  type OnLoadArgs,
  type OnLoadResult,
  type OnResolveArgs,
  type OnResolveResult,
  type OutputFile,
  type Plugin,
} from 'esbuild'

const HERE = fileURLToPath(new URL('.', import.meta.url))
export interface BundleSize {
  readonly name: string
  readonly minified: number
  readonly gzip: number
  /** Bytes before compression, by package, largest first. */
  readonly parts: readonly (readonly [name: string, bytes: number])[]
}

/** The allowed size of a bundle in bytes, minified and compressed, with all libraries. */
export interface Allowed {
  readonly name: string
  /** The largest size. A larger bundle fails the check. */
  readonly most: number
  /** The goal for later, if it is smaller. */
  readonly goal?: number
  /** The bundle whose size is subtracted, if only an addition is measured. */
  readonly over?: string
}

const KB = 1024

/** Local policies on Cloudflare Workers: the code that starts, and the same with all code that is loaded later. */
export const WORKERS = 'workers, local policies'
export const WORKERS_WHOLE = 'workers, local policies, in one file'

export const ALLOWED: readonly Allowed[] = [
  { name: 'express', goal: 26 * KB, most: 55 * KB },
  { name: 'fastify', goal: 26 * KB, most: 59.5 * KB },
  { name: 'koa', goal: 26 * KB, most: 55.25 * KB },
  { name: 'express + memoryStore()', most: 88.5 * KB },
  { name: 'express + redisStore()', goal: 48 * KB, most: 96.75 * KB },
  { name: 'express + redisStore() + slidingWindow()', over: 'express + redisStore()', most: 2 * KB },
  { name: 'express + redisStore() + slidingCounter()', over: 'express + redisStore()', most: 1.1875 * KB },
  { name: 'express + redisStore() + tokenBucket()', over: 'express + redisStore()', most: 3.875 * KB },
  { name: 'express + redisStore() + leakyBucket()', over: 'express + redisStore()', most: 2.1875 * KB },
  // These include the code that the first policy of the kind loads.
  { name: 'express + redisStore() + slidingWindow(), background', over: 'express + redisStore()', most: 8.5 * KB },
  { name: 'express + redisStore() + tokenBucket(), background', over: 'express + redisStore()', most: 11.5625 * KB },
  { name: 'express + redisStore(), leases', over: 'express + redisStore()', most: 7.5 * KB },
  { name: 'express + slidingWindow()', over: 'express', most: 2.0625 * KB },
  { name: 'express + slidingCounter()', over: 'express', most: 1.25 * KB },
  { name: 'express + tokenBucket()', over: 'express', most: 3.9375 * KB },
  { name: 'express + leakyBucket()', over: 'express', most: 2.25 * KB },
  { name: 'express + slidingLog()', over: 'express', most: 2.1875 * KB },
  { name: 'express + fixedWindow()', over: 'express', most: 1.0625 * KB },
  { name: 'express + follow()', over: 'express', most: 14.9375 * KB },
  { name: 'express + concurrency()', over: 'express', most: 1.5625 * KB },
  { name: WORKERS, goal: 30 * KB, most: 57.25 * KB },
  { name: WORKERS_WHOLE, goal: 50 * KB, most: 71.5 * KB },
]

const EXPRESS = `import { throttle } from '@weir/express'; export { throttle };`
const REDIS = `import { redisStore } from '@weir/redis'; export { redisStore };`
const LEASES = `export * from '../../../core/src/counting/leases/interval-quota.ts';export * from '../../../core/src/decide/reserve-all.ts';`
/** The code that the first policy of an algorithm loads if its counts are synced. */
const shared = (file: string) => `export * from '../../../core/src/counting/${file}';`
const WEB = `import { throttle } from '@weir/web'; export { throttle };`
const core = (name: string) => `import { ${name} } from '@weir/core'; export { ${name} };`

/** The code that an application bundles if it uses these names of the packages, without the framework and the client of the store. */
const ENTRIES: readonly (readonly [name: string, code: string])[] = [
  ['express', EXPRESS],
  ['fastify', `import weir from '@weir/fastify'; export default weir`],
  ['koa', `import { throttle } from '@weir/koa'; export default throttle`],
  ['createThrottler()', core('createThrottler')],
  ['express + memoryStore()', EXPRESS + core('memoryStore')],
  ['express + redisStore()', EXPRESS + REDIS],
  ['express + slidingWindow()', EXPRESS + core('slidingWindow')],
  ['express + slidingCounter()', EXPRESS + core('slidingCounter')],
  ['express + slidingLog()', EXPRESS + core('slidingLog')],
  ['express + tokenBucket()', EXPRESS + core('tokenBucket')],
  ['express + leakyBucket()', EXPRESS + core('leakyBucket')],
  ['express + fixedWindow()', EXPRESS + core('fixedWindow')],
  ['express + follow()', `${EXPRESS}import { fileRules, follow } from '@weir/core/rules'; export { fileRules, follow };`],
  ['express + concurrency()', EXPRESS + core('concurrency')],
  ['express + redisStore() + slidingWindow()', EXPRESS + REDIS + core('slidingWindow')],
  ['express + redisStore() + slidingCounter()', EXPRESS + REDIS + core('slidingCounter')],
  ['express + redisStore() + tokenBucket()', EXPRESS + REDIS + core('tokenBucket')],
  ['express + redisStore() + leakyBucket()', EXPRESS + REDIS + core('leakyBucket')],
  ['express + redisStore() + slidingWindow(), background', EXPRESS + REDIS + core('slidingWindow') + shared('sliding-window/shared.ts')],
  ['express + redisStore() + tokenBucket(), background', EXPRESS + REDIS + core('tokenBucket') + shared('bucket/background.ts')],
  ['express + redisStore(), leases', EXPRESS + REDIS + LEASES],
  [WORKERS, WEB],
  [WORKERS_WHOLE, WEB],
  ['express-rate-limit', `import { rateLimit } from 'express-rate-limit'; export default rateLimit`],
  ['@fastify/rate-limit', `import plugin from '@fastify/rate-limit'; export default plugin`],
  ['koa-ratelimit', `import limit from 'koa-ratelimit'; export default limit`],
  ['rate-limiter-flexible', `import { RateLimiterMemory } from 'rate-limiter-flexible'; export default RateLimiterMemory`],
]

export function measureBundles(names?: readonly string[]): Promise<BundleSize[]> {
  return Promise.all(ENTRIES.filter(([name]) => names === undefined || names.includes(name)).map(([name, code]) => measure(name, code)))
}

/** The allowed sizes and the measured ones, in bytes. */
export async function compareBundles(): Promise<(Allowed & { readonly bytes: number })[]> {
  const sizes = new Map((await measureBundles(ALLOWED.map(({ name }) => name))).map(({ name, gzip }) => [name, gzip]))
  const of = (name: string) => sizes.get(name) as number
  return ALLOWED.map((row) => ({ ...row, bytes: of(row.name) - (row.over === undefined ? 0 : of(row.over)) }))
}

/**
 * The code that is loaded at the start, as one file, as bundlers write it if they join such files. Code behind `import()` goes into
 * separate files. Only `WORKERS_WHOLE` contains it too, as a bundle in one file does.
 */
async function measure(name: string, code: string): Promise<BundleSize> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: HERE, loader: 'js' },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    outdir: 'out',
    format: 'esm',
    logLevel: 'error',
    ...(name === WORKERS || name === WORKERS_WHOLE ? ON_WORKERS : ON_NODE),
    plugins: [
      { name: 'scripts as they are published', setup: ({ onLoad }) => onLoad({ filter: SCRIPTS }, shortened) },
      ...(name === WORKERS_WHOLE ? [] : [LATER]),
    ],
  })
  const [{ contents }] = outputFiles as [OutputFile]
  const parts = new Map<string, number>()
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const owner =
        /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ??
        /packages\/([^/]+)/.exec(path)?.[1] ??
        /^\.\.\/\.\.\/\.\.\/([^/]+)\/src/.exec(path)?.[1] ??
        'own'
      parts.set(owner, (parts.get(owner) ?? 0) + bytesInOutput)
    }
  }
  return {
    name,
    minified: contents.length,
    gzip: gzipSync(contents, { level: 9 }).length,
    parts: [...parts].filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]),
  }
}

const ON_NODE = {
  platform: 'node',
  target: 'node20',
  external: ['express', 'fastify', 'koa', 'ioredis'],
  conditions: ['@weir/source'],
} satisfies BuildOptions

/** With `nodejs_compat`, as Wrangler bundles it. */
const ON_WORKERS = {
  platform: 'neutral',
  target: 'es2022',
  mainFields: ['module', 'main'],
  external: ['node:*', 'cloudflare:*'],
  conditions: ['workerd', 'worker', 'browser', '@weir/source'],
} satisfies BuildOptions

const LATER: Plugin = { name: 'code that is loaded later', setup: ({ onResolve }) => onResolve({ filter: /^\.{1,2}\// }, leftOut) }

function leftOut({ kind, path }: OnResolveArgs): OnResolveResult | undefined {
  return kind === 'dynamic-import' ? { path, external: true } : undefined
}

/** Lua scripts, which a build shortens. */
const SCRIPTS = /[\\/]redis[\\/]src[\\/]scripts[\\/]\w[\w-]*\.ts$/

async function shortened({ path }: OnLoadArgs): Promise<OnLoadResult | undefined> {
  const folder = dirname(path)
  const modules = await Promise.all(
    readdirSync(folder).map(async (file) => [file, Object.entries(await import(join(folder, file)))] as const),
  )
  const texts = modules.flatMap(([, made]) => made.flatMap(([, value]) => (typeof value === 'string' ? [value] : [])))
  const short = new Map(shortenLua(texts).map((text, at) => [texts[at], text]))
  const [, made = []] = modules.find(([file]) => file === basename(path)) ?? []
  const constants = made.filter(([, value]) => typeof value === 'string')
  if (constants.length === 0) return undefined
  return { contents: constants.map(([name, text]) => `export const ${name} = ${JSON.stringify(short.get(text as string))}`).join('\n') }
}
