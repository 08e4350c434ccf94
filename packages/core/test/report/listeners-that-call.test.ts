import { expect, test, vi } from 'vitest'
import { concurrency, fixedWindow } from '../../src/index.ts'
import type { EventName } from '../../src/report/events.ts'
import { type Node, type Scene, scene } from '../support/nodes.ts'
import { waiting } from '../support/waiting.ts'

const POLICY = { limit: 2, interval: 1_000, cooldown: '500ms' } as const
const OTHER = { name: 'other', limit: 50, interval: 10_000 } as const
const SLOTS = { name: 'slots', limit: 1_000, coordination: 'local', algorithm: concurrency({ maxDuration: 1_000 }) } as const

/** The events that a throttler makes with a store that comes and goes. Events of rules are made after everything else. */
const EVENTS: readonly EventName[] = [
  'blocked',
  'unblocked',
  'rejections',
  'waited',
  'sync',
  'syncFailed',
  'storeDown',
  'storeUp',
  'slotExpired',
  'reservationExpired',
  'overflow',
  'nodes',
  'warning',
]

const CALLS: Readonly<Record<string, (node: Node, here: Scene) => unknown>> = {
  check: (node) => node.check('a'),
  'check of a new key': (node, { world }) => node.check(`new ${world.time}`),
  reserve: (node) => node.reserve('r', { cost: { default: 1 }, ttl: '20ms' }),
  acquire: (node) => node.acquire('a', { timeout: 50 }).catch(() => {}),
  reset: (node) => node.reset('a'),
  block: (node) => node.block('a', '100ms'),
  unblock: (node) => node.unblock('a'),
  update: (node, { world }) => node.update([{ ...POLICY, limit: 2 + (world.time % 2) }, OTHER, SLOTS]),
  'update to other policies': (node, { world }) => node.update([{ ...POLICY, interval: 1_000 + (world.time % 500) }]),
  close: (node) => void node.close(),
}

for (const [name, call] of Object.entries(CALLS)) {
  test(`listeners of all events may call: ${name}`, async () => {
    const heard = new Set<EventName>()
    const here = scene()
    // A listener that sends makes another event with each sync.
    here.store.roundTrip = 2
    const node = here.node([POLICY, OTHER, SLOTS], { maxKeys: 40 })
    const failed: unknown[] = []
    let depth = 0
    for (const event of EVENTS) {
      node.on(event, () => {
        heard.add(event)
        // A listener is never called within the call of another one.
        expect(++depth).toBe(1)
        // A block for each block would never end.
        if (node.state !== 'closed' && !(name === 'block' && event === 'blocked')) {
          try {
            call(node, here)
          } catch (error) {
            if ((error as { code?: string }).code !== 'WEIR_CLOSED') failed.push(error)
          }
        }
        depth--
      })
    }
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    const queue = await waiting(here, node)
    node.start()
    const other = here.node([{ ...POLICY, limit: 3 }, OTHER, SLOTS])
    other.start()
    for (let i = 0; i < 60; i++) {
      here.store.health = i % 20 < 12 ? 'up' : 'rejecting'
      for (const act of [
        () => node.check('a'),
        () => node.check(`key ${i}`, i === 5 ? -1 : 1),
        () => queue.acquire('b', { timeout: '300ms' }),
        () => i % 10 === 0 && node.block('c', '50ms'),
        () => i % 10 === 0 && node.reserve('r', { cost: { default: 1 }, ttl: '50ms' }),
      ]) {
        try {
          act()
        } catch (error) {
          expect(error).toMatchObject({ code: 'WEIR_CLOSED' })
        }
      }
      await here.world.run(100)
    }
    here.store.health = 'up'
    await here.world.run(2_000)
    await vi.waitFor(() => expect(node.waiting).toBe(0))
    expect(failed).toEqual([])
    if (name === 'check') expect([...EVENTS].filter((event) => !heard.has(event))).toEqual([])
    process.off('warning', onWarning)
    expect(warnings.filter(({ message }) => message.includes('listener'))).toEqual([])
    await here.close()
  })
}

test('a listener that calls check while waiting requests go takes the place of none of them', async () => {
  const here = scene()
  const node = here.node({ limit: 3, interval: 1_000, algorithm: fixedWindow() }, { alone: true })
  const queue = await waiting(here, node)
  await here.world.runTo(1_000)
  const went: boolean[] = []
  node.on('waited', () => {
    went.push(node.check('a').allowed)
  })
  for (let i = 0; i < 6; i++) queue.acquire('a', { timeout: '5s', name: String(i) })
  await here.world.runTo(2_000)
  expect(queue.went).toEqual(['0', '1', '2', '3', '4', '5'])
  expect(went).toEqual([false, false, false])
  await here.close()
})

test('a listener that makes an event for each one it hears does not hold the process', async () => {
  const node = scene().node({ limit: 1, interval: '1m' }, { alone: true })
  let heard = 0
  node.on('blocked', () => {
    if (++heard < 1_000) node.block(`key ${heard}`, '1m')
  })
  node.block('first', '1m')
  expect(heard).toBe(1)
})

test('events of a call are heard before it returns', () => {
  const node = scene().node({ limit: 1, interval: '1m', cooldown: '1m' }, { alone: true })
  const heard: string[] = []
  node.on('blocked', ({ key }) => heard.push(`blocked ${key}`))
  node.on('unblocked', ({ key }) => heard.push(`unblocked ${key}`))
  node.check('a')
  node.check('a')
  node.block('b', '1m')
  node.unblock('b')
  node.reset('a')
  expect(heard).toEqual(['blocked a', 'blocked b', 'unblocked b', 'unblocked a'])
})
