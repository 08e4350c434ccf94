import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './pages.ts'

const lines = readFileSync(join(ROOT, 'README.md'), 'utf8').split('\n')

test('the README says first what it is', () => {
  expect(lines.slice(0, 5).join('\n')).toMatch(/^!\[\]\(docs\/logo\.svg\)\n\n# Weir\n\nWeir is a distributed rate limiter for Node\.js\./)
})

test('it is read where lines are not wrapped, too', () => {
  expect(lines.filter((line) => [...line].length > 120)).toEqual([])
})

test('it shows how to see and how to test it', () => {
  for (const command of ['npx -y pnpm demo', 'npx -y pnpm test']) expect(lines).toContain(command)
})
