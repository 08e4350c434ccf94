import { type Args, ipcVictim } from '../attacks/ipc-hostile-child.ts'
import { attack } from '../harness/attack.ts'

/** Sends messages from a child that nearly equal the messages of its store. */
export const fuzzIpc = attack<Args>({
  name: 'fuzz-ipc',
  targets: ['core'],
  victim: ipcVictim,

  async run({ start, result, random, time }) {
    const victim = await start({ role: 'parent', name: 'fuzz-ipc' }, { heap: 256 })
    await victim.ask('honest')
    await victim.ask('genuine')
    const seed = random.below(1e9)
    const sent = await victim.ask<number>({ order: 'fuzz', seed, time }, time + 20_000).catch(() => 0)
    await new Promise((resolve) => setTimeout(resolve, 300))
    type Honest = { readonly allowed: number; readonly fresh: number; readonly state: string }
    const after = victim.up ? await victim.ask<Honest>('honest', 10_000).catch(() => undefined) : undefined
    const held = victim.up && after !== undefined && after.allowed === 0 && after.fresh <= 5 && after.state === 'synced'
    const why = victim.up
      ? `sibling: ${after === undefined ? 'gone' : `${after.state}, ${after.allowed} more`}`
      : `${victim.ended} ${victim.output.match(/last said: .*/)?.[0] ?? ''}`
    result(`${sent} messages`, held, why)
  },
})
