// Fails if a bundle is larger than its bound. It is a step of `pnpm check`.
import { compareBundles } from './sizes.ts'

const rows = await compareBundles()
for (const { name, over, bytes, most, goal } of rows) {
  const what = over === undefined ? name : `${name}, added`
  console.log(`${what}: ${bytes} bytes, minified and compressed (at most ${most}${goal === undefined ? '' : `, to reach ${goal}`})`)
}
process.exitCode = rows.every(({ bytes, most }) => bytes <= most) ? 0 : 1
