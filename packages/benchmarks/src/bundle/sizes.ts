import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const HERE = fileURLToPath(new URL('.', import.meta.url))
/** Bytes that core and one adapter may take, minified and compressed, with all libraries. */
export const MOST = 18 * 1024
/** Where it must not grow beyond unnoticed as long as the goal is not reached. */
export const MOST_NOW = 50 * 1024

export interface BundleSize {
  readonly name: string
  readonly minified: number
  readonly gzip: number
  /** Bytes before compression, by package, largest first. */
  readonly parts: readonly (readonly [name: string, bytes: number])[]
}

/** What an application that uses one name of a package bundles, without the framework itself. */
const ENTRIES: readonly (readonly [name: string, code: string])[] = [
  ['core + express', `import { throttle } from '@weir/express'; export default throttle`],
  ['core + fastify', `import weir from '@weir/fastify'; export default weir`],
  ['core + koa', `import { throttle } from '@weir/koa'; export default throttle`],
  ['core alone (createThrottler)', `import { createThrottler } from '@weir/core'; export default createThrottler`],
  ['core + redis', `import { redisStore } from '@weir/redis'; export default redisStore`],
  ['express-rate-limit', `import { rateLimit } from 'express-rate-limit'; export default rateLimit`],
  ['@fastify/rate-limit', `import plugin from '@fastify/rate-limit'; export default plugin`],
  ['koa-ratelimit', `import limit from 'koa-ratelimit'; export default limit`],
  ['rate-limiter-flexible', `import { RateLimiterMemory } from 'rate-limiter-flexible'; export default RateLimiterMemory`],
]

export function measureBundles(names?: readonly string[]): Promise<BundleSize[]> {
  return Promise.all(ENTRIES.filter(([name]) => names === undefined || names.includes(name)).map(([name, code]) => measure(name, code)))
}

async function measure(name: string, code: string): Promise<BundleSize> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: HERE, loader: 'js' },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['@weir/source'],
    external: ['express', 'fastify', 'koa', 'ioredis'],
    logLevel: 'error',
  })
  const [file] = outputFiles
  const contents = file?.contents ?? new Uint8Array()
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
