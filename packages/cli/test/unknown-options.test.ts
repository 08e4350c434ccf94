import { expect, test } from 'vitest'
import { weir } from './weir.ts'

const STORE = ['--store', 'redis://127.0.0.1:1']

test.each([
  ['--namespce', 'namespace'],
  ['--prefix', 'namespace'],
  ['--key-prefix', 'namespace'],
])('weir top %s is answered by --%s', async (given, meant) => {
  const { code, err } = await weir(['top', ...STORE, given, 'x'])
  expect(code).toBe(2)
  expect(err).toContain(`error: unknown option '${given}'\n(Did you mean --${meant}?)`)
})

test.each(['--redis', '--url', '--stor'])('weir top %s, without a store, is answered by --store', async (given) => {
  const { code, err } = await weir(['top', given, STORE[1] as string])
  expect(code).toBe(2)
  expect(err).toContain("'--store <address>'")
})

test('an option that is like none is answered by how to list them', async () => {
  const { err } = await weir(['top', ...STORE, '--colour'])
  expect(err).toContain("unknown option '--colour'")
  expect(err).toContain('(weir top --help lists the options)')
})
