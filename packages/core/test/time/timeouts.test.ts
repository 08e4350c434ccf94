import { expect, test } from 'vitest'
import { Timeouts } from '../../src/time/timeouts.ts'
import { World } from '../support/world.ts'

class Item {
  endsAt = 0
  earlier: this | undefined
  later: this | undefined
  line: { first: Item | undefined; last: Item | undefined } | undefined
}

test('timeouts that differ leave nothing behind when their items are removed', () => {
  const clock = new World().clock()
  const timeouts = new Timeouts<Item>(clock as never, () => {})
  const stays = new Item()
  timeouts.add(stays, 1e6, 0)
  for (let i = 0; i < 200_000; i++) {
    const item = new Item()
    timeouts.add(item, 1_000 + i, 0)
    timeouts.remove(item)
  }
  const begun = performance.now()
  for (let i = 0; i < 1_000; i++) expect(timeouts.next).toBe(stays)
  // With a line for each timeout it would take seconds.
  expect(performance.now() - begun).toBeLessThan(500)
})
