import { manualClock } from '@weir/testing'
import { expect, test } from 'vitest'
import { Listener } from '../src/connection/listener.ts'
import type { Client } from '../src/connection/template.ts'

type Notified = (of: { readonly channel: string; readonly payload: string }) => void

/**
 * A listener behind a pooler. `notifies` returns whether its other connection can send now, and `passes` whether the pooler passes
 * notifications.
 */
function behindPooler({ notifies, passes }: { readonly notifies: () => boolean; readonly passes: boolean }) {
  const clock = manualClock()
  const queries: string[] = []
  const deaf: string[] = []
  let heard: Notified = () => {}
  const client = {
    processID: 1,
    connect: async () => {},
    query: async (query: string | { readonly text: string }) => {
      queries.push(typeof query === 'string' ? query : query.text)
      return { rows: [{ pid: '2' }] }
    },
    end: async () => {},
    on: (event: string, listener: Notified) => {
      if (event === 'notification') heard = listener
    },
  }
  const listener = new Listener({
    template: { address: 'none', client: () => client as unknown as Client },
    clock,
    patience: 100,
    channel: 'weir',
    notify: async (channel) => {
      if (!notifies()) throw new Error('not connected')
      if (passes) heard({ channel, payload: '' })
    },
    heard: () => {},
    deaf: (reason) => deaf.push(reason),
  })
  return { clock, queries, deaf, close: () => listener.close() }
}

test('a pooler is not blamed while nothing can be sent', async () => {
  let connected = false
  const { clock, queries, deaf, close } = behindPooler({ notifies: () => connected, passes: true })
  await clock.advance(60_000)
  expect(deaf).toEqual([])
  connected = true
  await clock.advance(1_000)
  expect(deaf).toEqual([])
  expect(queries.filter((query) => query.startsWith('UNLISTEN'))).toHaveLength(1)
  close()
})

test('a pooler that lets nothing through is found out', async () => {
  const { clock, deaf } = behindPooler({ notifies: () => true, passes: false })
  await clock.advance(1_000)
  expect(deaf).toEqual([expect.stringContaining('a pooler')])
})

test('nothing is tested any more once it is closed', async () => {
  const { clock, deaf, close } = behindPooler({ notifies: () => false, passes: true })
  await clock.advance(1_000)
  close()
  await clock.advance(60_000)
  expect(deaf).toEqual([])
})
