import { expect, it } from 'vitest'
import { search } from '../../src/model/search.ts'
import { SHORT } from '../../src/model/searches.ts'

it.each(SHORT.map(({ name, model }) => [name, model] as const))(
  'leases never exceed the limit and lose nothing, whatever happens to messages and nodes: %s',
  (_name, model) => {
    const { fault, path, whole, states } = search(model)
    expect([fault, path]).toEqual([undefined, []])
    expect(whole).toBe(true)
    expect(states).toBeGreaterThan(10_000)
  },
)
