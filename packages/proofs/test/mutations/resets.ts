import { createThrottler, slidingWindow } from '@weir/core'
import { Hub, memoryStore } from '@weir/core/memory'
import { manualClock } from '@weir/testing'

const LIMIT = 60

/** Finds faults after a reset, in processes that had sent, unsent and postponed counts of the key. */
export async function resetsHold(): Promise<readonly string[]> {
  const found: string[] = []
  for (const algorithm of [undefined, slidingWindow()]) {
    const clock = manualClock()
    const hub = new Hub(clock)
    const policy = { limit: LIMIT, interval: 60_000, cooldown: 300_000, ...(algorithm && { algorithm }) }
    const nodes = [1, 2, 3].map((seed) => {
      let state = seed
      const random = (): number => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647
      return createThrottler({ policies: [policy], store: memoryStore(hub), clock, random }).start()
    })
    const [one, two, three] = nodes as [(typeof nodes)[0], (typeof nodes)[0], (typeof nodes)[0]]
    const say = (what: string, is: unknown, wanted: unknown): void => {
      if (is !== wanted) found.push(`${algorithm?.name ?? 'fixedWindow()'}: ${what} is ${String(is)}, not ${String(wanted)}`)
    }
    const used = async (): Promise<number | undefined> => {
      const answer = two.usage('k')
      await clock.advance(200)
      return (await answer)[0]?.used
    }
    // After the start heartbeats are close together, and each would repair the effect of a wrong announcement.
    await clock.advance(1_000)
    const early = one.check('k', 9)
    for (const node of nodes) for (let i = 0; i < 3; i++) node.check('k')
    say('what the nodes have used together', await used(), 18)
    two.check('k', 2)
    one.reset('k')
    await clock.advance(20)
    for (const node of nodes) say('what is left after a reset', node.peek('k').remaining, LIMIT)
    three.check('k', 5)
    three.check('k', 5)
    await clock.advance(20)
    one.check('k', 3)
    one.refund(early)
    say('what was used after a reset', await used(), 13)
    // A sync from before the reset arrives late, and a process that has not received the reset starts a cooldown.
    for (const node of nodes) for (let i = 0; i < LIMIT; i++) node.check('k')
    await clock.advance(50)
    say('a key over its limit', two.check('k').reason, 'cooldown')
    three.reset('k')
    await clock.advance(20)
    for (const node of nodes) say('a key after its cooldown was reset', node.peek('k').reason, 'ok')
    one.block('k', '1h')
    await clock.advance(20)
    three.reset('k')
    await clock.advance(20)
    for (const node of nodes) say('a key that was blocked by hand, and reset', node.peek('k').reason, 'blocked')
    const closing = Promise.all(nodes.map((node) => node.close()))
    await clock.advance(3_000)
    await closing
  }
  return found
}
