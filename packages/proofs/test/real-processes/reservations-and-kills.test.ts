import { fork } from 'node:child_process'
import { once } from 'node:events'
import { storeAt } from '@weir/bench/stores/place'
import { MEETINGS, type Meeting } from '@weir/bench/stores/servers'
import { createThrottler } from '@weir/core'
import { expect, test } from 'vitest'
import { policyOf, type Reserving, UNITS, USED } from './reserving-node.ts'

const COUNT = 1_000
/** Long enough to open all reservations on a busy machine. */
const TTL = 10_000
const PATIENCE = 120_000

const CELLS = [
  ['redis', 'central'],
  ['redis', 'leased'],
  ['postgres', 'central'],
] as const

test.concurrent.each(CELLS)(
  '%s, %s: the store settles 1,000 open reservations of a killed process by their rules',
  async (name, coordination) => {
    const meeting = await MEETINGS[name]?.()
    if (meeting === undefined) {
      console.warn(`There is no ${name} on this machine: reservations of a killed process are not tested over it here.`)
      return
    }
    try {
      await settled(meeting, { place: meeting.place, coordination, count: COUNT, ttl: TTL })
    } finally {
      await meeting.stop()
    }
  },
  PATIENCE,
)

async function settled({ place }: Meeting, task: Reserving): Promise<void> {
  const throttler = createThrottler({ policies: [policyOf(task)], store: await storeAt(place, 10_000) }).start()
  const used = async () => (await throttler.usage('key'))[0]?.used
  const child = fork(new URL('./reserving-node.ts', import.meta.url), ['reserve'], {
    execArgv: ['--import', 'tsx', '--conditions=@weir/source'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  try {
    child.send(task)
    const [open] = await Promise.race([once(child, 'message'), once(child, 'exit')])
    expect(open).toBe(COUNT)
    // All units count, and the reported use arrives within about a second.
    await expect.poll(used, { timeout: TTL }).toBe(COUNT * UNITS)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await used()).toBe(COUNT * UNITS)
    const [full, reported] = [Math.ceil(COUNT / 3), Math.floor(COUNT / 3)]
    await expect.poll(used, { timeout: 2 * TTL, interval: 500 }).toBe(full * UNITS + reported * USED)
  } finally {
    child.kill('SIGKILL')
    await throttler.close()
  }
}
