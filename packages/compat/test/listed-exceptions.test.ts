import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '@weir/tooling/workspace'
import { expect, test } from 'vitest'
import { EXCEPTIONS as BETTER_AUTH } from './better-auth-exceptions.ts'
import { EXCEPTIONS as EXPRESS } from './express-rate-limit/exceptions.ts'
import { EXCEPTIONS as FASTIFY } from './fastify-rate-limit/exceptions.ts'
import { EXCEPTIONS as NEST } from './nestjs-throttler/own-cases.ts'

test('a page lists each exception with its reason, and no other', () => {
  const page = readFileSync(join(ROOT, 'docs/evidence/compat.md'), 'utf8')
  const [, section = ''] = page.split('## The suites of these libraries')
  const rows = [...(section.split('## Faults')[0]?.matchAll(/^\|.*?\| (.*?) \| (.*?) \|$/gm) ?? [])].slice(1)
  const listed = rows.map(([, name = '', reason = '']) => [name.replace(/^(\d+) cases of .*$/, '$1'), reason])
  const known = [
    ...Object.entries(EXPRESS),
    ...Object.entries(NEST),
    ...FASTIFY.map(({ reason, cases }) => [`${cases.length}`, reason]),
    ...Object.entries(BETTER_AUTH),
  ]
  expect(listed).toEqual(known)
})
