import { Socket } from 'node:net'
import { queryObjects } from 'node:v8'
import { type Algorithm, type Store, slidingCounter } from '@weir/core'
import type { DecidedPolicy, Decider } from '@weir/core/sync'
import { until } from '@weir/tooling/redis-servers'
import { describe, expect, it } from 'vitest'
import { type FaultProxy, faultProxy } from '../../src/index.ts'
import { POLICY, TestNode } from './test-node.ts'

/** A store that connects to a port of this machine. A sync fails after `timeout` milliseconds. */
export type OpenAt = (port: number, timeout: number) => Store

/** Milliseconds after which a sync fails. */
const TIMEOUT = 200
/** Milliseconds between two syncs. They don't wait for each other. */
const PAUSE = 5
/** Syncs, each with a decision, before the first count of objects, and from there to the second count. */
const SETTLED = 90
const MORE = 270
/** The allowed difference of the counts, because connections open and close meanwhile. */
const SLACK = 100
/** The most syncs and decisions in flight: those of three timeouts, because a busy machine notices a timeout late. */
const MOST_PENDING = (3 * 2 * TIMEOUT) / PAUSE

/** Faults on the way to the store, from one sync to the next. */
const FAULTS: Readonly<Record<string, (proxy: FaultProxy, exchange: number) => void>> = {
  'is down': (proxy, exchange) => {
    if (exchange > 0) return
    proxy.set({ reject: true })
    proxy.reset()
  },
  hangs: (proxy, exchange) => {
    if (exchange === 0) proxy.set({ halfOpen: true })
  },
  'loses replies': (proxy, exchange) => {
    if (exchange === 0) proxy.set({ loseReplies: true })
  },
  flaps: (proxy, exchange) => {
    const phase = exchange % 90
    if (phase === 0) {
      proxy.set({ reject: true })
      proxy.reset()
    }
    if (phase === 30) proxy.heal()
    if (phase === 60) proxy.set({ halfOpen: true })
    if (phase === 89) proxy.heal()
  },
}

/** Objects that an outage may leave behind in a process. */
interface Left {
  readonly promises: number
  readonly sockets: number
  readonly timers: number
}

/** Counts sockets, without both ends of each connection in the proxy, which runs in this process too. */
function left(proxy: FaultProxy): Left {
  const timers = process.getActiveResourcesInfo().filter((what) => what === 'Timeout').length
  return {
    promises: queryObjects(Promise, { format: 'count' }),
    sockets: queryObjects(Socket, { format: 'count' }) - 2 * proxy.connections,
    timers,
  }
}

/**
 * While a real client's server fails, syncs and decisions continue at a high rate. They may leave nothing behind: no command that
 * waits in the client, no socket, no timer, no listener. Afterwards everything works again, announcements included.
 *
 * @param server returns the port of the real server
 */
export function boundedConnections(name: string, server: () => { readonly port: number }, openAt: OpenAt): void {
  describe(`${name}: what is pending stays bounded`, () => {
    it.each(Object.keys(FAULTS))('while the server %s, and all works again afterwards', { timeout: 120_000 }, async (fault) => {
      const proxy = await faultProxy({ port: server().port })
      const warnings: string[] = []
      const warned = ({ name: kind }: Error): void => void warnings.push(kind)
      process.on('warning', warned)
      const node = new TestNode(openAt(proxy.port, TIMEOUT))
      const other = new TestNode(openAt(server().port, 10_000))
      try {
        await node.eventually(() => node.count('k', 1).catch(() => undefined))
        const decider = await node.connection.decider?.()
        let exchanges = 0
        let pending = 0
        let most = 0
        const go = async (count: number): Promise<void> => {
          for (const end = exchanges + count; exchanges < end; exchanges++) {
            FAULTS[fault]?.(proxy, exchanges)
            const key = `key ${exchanges}`
            for (const asked of [node.count(key, 1), decide(decider, exchanges, key)]) {
              pending++
              asked.catch(() => {}).finally(() => pending--)
            }
            most = Math.max(most, pending)
            await new Promise((resolve) => setTimeout(resolve, PAUSE))
          }
          // Objects that exist now were left behind for good.
          await until(() => {
            // This call stands for a process's heartbeats, which continue. A silent connection is closed with the next sync.
            node.count('beat', 1).catch(() => {})
            return pending === 0
          }, 'all exchanges have ended')
        }
        await go(SETTLED)
        const before = left(proxy)
        await go(MORE)
        const after = left(proxy)
        for (const what of ['promises', 'sockets', 'timers'] as const)
          expect(after[what] - before[what], `${what}: ${before[what]} before`).toBeLessThan(SLACK)
        expect(most).toBeLessThan(MOST_PENDING)
        expect(warnings.filter((kind) => kind === 'MaxListenersExceededWarning')).toEqual([])
        proxy.heal()
        await node.eventually(() => node.count('k', 2).catch(() => undefined))
        await node.eventually(() => decide(decider, ++exchanges, 'afterwards').catch(() => undefined))
        const limited = { ...POLICY, id: 'limited', limit: 1 }
        await until(async () => {
          await other.count(`limited ${other.id} ${exchanges++}`, 1, limited).catch(() => undefined)
          return node.announcements.length > 0
        }, 'an announcement is heard')
      } finally {
        process.off('warning', warned)
        await Promise.all([node.close(), other.close()])
        await proxy.close()
      }
    })
  })
}

const STEP = (slidingCounter() as Required<Algorithm>).step
const DECIDED: DecidedPolicy = { id: 'decided', step: STEP, parameters: STEP.parameters({ interval: 60_000, limit: 5 } as never) }

async function decide(decider: Decider | undefined, sequence: number, key: string): Promise<unknown> {
  const time = Date.now()
  const questions = [{ policy: DECIDED, key, kind: 'take' as const, units: 1, limit: 5, at: time }]
  return await decider?.decide({ sequence, time, questions })
}
