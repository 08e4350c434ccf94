import { expect, test } from 'vitest'
import { MOST_NOW, measureBundles } from '../src/bundle/sizes.ts'

test.each(['core + express', 'core + fastify', 'core + koa'])('%s does not grow unnoticed', { timeout: 60_000 }, async (name) => {
  const [size] = await measureBundles([name])
  expect(size?.gzip).toBeLessThanOrEqual(MOST_NOW)
})
