import { expect, it } from 'vitest'
import { search } from '../src/model/search.ts'
import { SHORT } from '../src/model/searches.ts'

it.each(SHORT.map((options) => [options.name, options] as const))(
  'leases never exceed the limit and lose nothing, whatever happens to messages and nodes: %s',
  (_name, options) => {
    const { fault, path, whole, states } = search(options)
    expect([fault, path]).toEqual([undefined, []])
    expect(whole).toBe(true)
    expect(states).toBeGreaterThan(10_000)
  },
  120_000,
)
