import { describe, expect, it } from 'vitest'
import { editsOf, findingsOf, type Mutation } from './mutant.ts'

/**
 * Declares that the checks pass with the unchanged sources, and that each mutation makes its check fail. So the goals notice if a
 * point of the algorithm is missing.
 */
export function failWhenMutated(what: string, mutations: readonly Mutation[]): void {
  describe(`${what}, as it is,`, () => {
    const checks = [...new Set(mutations.map(({ check }) => check))]
    it.each(checks)('passes: %s', async (check) => {
      expect(await findingsOf([], check)).toEqual([])
    })
  })
  describe(`${what} fails where it must when`, () => {
    it.each(mutations.map((mutation) => [mutation.name, mutation] as const))('%s', async (_name, mutation) => {
      expect(await findingsOf(editsOf(mutation), mutation.check)).not.toEqual([])
    })
  })
}
