import { createThrottler, slidingWindow } from '@weir/core'
import { snapshot } from '@weir/core/inspect'
import { expect, test, vi } from 'vitest'
import { redisStore } from '../src/index.ts'
import { freshNamespace, PATIENT } from './fixtures.ts'
import { ownServer } from './own-server.ts'

const here = ownServer()

test.each([
  ['fixed', {}],
  ['sliding', { algorithm: slidingWindow() }],
] as const)('a charge that passes the limit is told to another process at once, with a %s window', async (_name, window) => {
  const namespace = freshNamespace()
  // One store each, like two processes.
  const [a, b] = [0, 1].map(() =>
    createThrottler({
      policies: [{ limit: 100, interval: '1d', spans: 2, ...window }],
      store: redisStore(here.server.url, { ...PATIENT, namespace }),
    }),
  ) as [ReturnType<typeof createThrottler>, ReturnType<typeof createThrottler>]
  try {
    for (const one of [a, b]) one.start()
    await vi.waitFor(() => expect([a, b].map((one) => snapshot(one).nodes)).toEqual([2, 2]), 10_000)
    await here.listening(namespace, 2)
    a.charge(a.check('k', 60), 500)
    // No request uses the key at `b`, so all its counts come from announcements.
    await vi.waitFor(() => expect(b.peek('k').allowed).toBe(false), 10_000)
  } finally {
    await Promise.all([a, b].map((one) => one.close()))
  }
})
