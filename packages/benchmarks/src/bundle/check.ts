// Fails when core and an adapter have grown beyond what is allowed: a step of `pnpm check`.
import { MOST_NOW, measureBundles } from './sizes.ts'

const sizes = await measureBundles(['core + express', 'core + fastify', 'core + koa'])
for (const { name, gzip } of sizes) console.log(`${name}: ${gzip} bytes, minified and compressed (at most ${MOST_NOW})`)
process.exitCode = sizes.every(({ gzip }) => gzip <= MOST_NOW) ? 0 : 1
