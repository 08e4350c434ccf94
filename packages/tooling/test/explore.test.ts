import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { finding, propertyFiles } from '../src/explore.js'
import { ROOT } from '../src/workspace.js'

const ofPackage = (name: string): string[] => propertyFiles().find(({ directory }) => basename(directory) === name)?.files ?? []

test('files with a property, or whose support runs one, are explored, and no others', () => {
  expect(ofPackage('core')).toContain('test/keys/slot-map.test.ts')
  // The support of these files has the property or uses the seed.
  expect(ofPackage('redis')).toContain('test/agrees-with-the-hub.test.ts')
  expect(ofPackage('testing')).toContain('test/algorithms-keep-the-contract.test.ts')
  // The support of this file has arbitraries, but the file uses none.
  expect(ofPackage('core')).not.toContain('test/decide/cooldown.test.ts')
  expect(readFileSync(join(ROOT, 'packages/core/test/decide/cooldown.test.ts'), 'utf8')).not.toContain('fast-check')
})

test('a failure of a property names the test, its seed, the shrunk case, and what replays it', () => {
  const text = [
    "test/a.test.ts > numbers > can't be (wrong)",
    'Error: Property failed after 3 tests',
    '{ seed: 7, path: "2:0", endOnFailure: true }',
    'Counterexample: [{"a":1},',
    '"b"]',
    'Shrunk 5 time(s)',
    '',
    'Hint: …',
    'Caused by: AssertionError: expected 1 to be 2',
  ].join('\n')
  expect(finding({ file: 'test/a.test.ts', text }, join(ROOT, 'packages/core'), 7)).toBe(
    [
      'FAILED packages/core/test/a.test.ts',
      "  test    numbers > can't be (wrong)",
      '  seed    7',
      '  Counterexample: [{"a":1},',
      '"b"]',
      '  Caused by: AssertionError: expected 1 to be 2',
      `  replay  cd packages/core && FC_SEED=7 npx -y pnpm vitest run test/a.test.ts -t 'numbers can'\\''t be \\(wrong\\)'`,
    ].join('\n'),
  )
})

test('another failure shows the beginning of its error', () => {
  const found = finding(
    { file: 'test/a.test.ts', text: 'test/a.test.ts > sums\nError: 2 of 3\n  FC_SEED=7' },
    join(ROOT, 'packages/core'),
    7,
  )
  expect(found).toContain('  Error: 2 of 3\n    FC_SEED=7\n')
})
