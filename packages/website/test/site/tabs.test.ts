import { expect, test } from 'vitest'
import { pnpmOf } from '../../src/site/tabs.ts'

test.each([
  ['npm install a @weir/b\n', 'pnpm add a @weir/b\n'],
  ['npm install --save-dev @types/a    # in TypeScript\n', 'pnpm add --save-dev @types/a    # in TypeScript\n'],
  ['npm install a\nnpm uninstall b\n', 'pnpm add a\npnpm remove b\n'],
  ['npm install --save-dev @weir/cli\nnpx weir plan access.log\n', 'pnpm add --save-dev @weir/cli\npnpm exec weir plan access.log\n'],
])('install commands have a form for pnpm: %j', (npm, pnpm) => {
  expect(pnpmOf(npm)).toBe(pnpm)
})

test.each([
  ['curl http://localhost:3000/\n'],
  ['npx weir top\n'],
  ['npx -y pnpm demo\n'],
  ['npm install a\ncurl http://localhost:3000/\n'],
  ['npm test\n'],
])('other commands stay as they are: %j', (commands) => {
  expect(pnpmOf(commands)).toBeUndefined()
})
