import { type Duration, parseDuration } from '../../options/duration.ts'
import { oneOf } from '../../options/one-of.ts'
import { show } from '../../report/errors.ts'
import { checkAlgorithmOptions } from '../../report/names.ts'
import { whenEnded } from '../../report/when-ended.ts'
import { LONGEST_TIMER } from '../../time/alarm.ts'
import type { SlotAlgorithm, Slots } from '../algorithm.ts'
import { LocalSlots } from './local.ts'

/** Options of `concurrency`. */
export interface ConcurrencyOptions {
  /**
   * Frees a slot that was not released for this long (1 s to 24 days), with one `warning`. It is freed up to a thirtieth later, or half a
   * second if that is longer.
   *
   * So a lost request doesn't block its slot forever.
   *
   * @default '10m'
   */
  readonly maxDuration?: Duration
  /**
   * Releases a slot when the handler has ended and the response has been sent, or when the response has been sent or its connection has
   * closed.
   *
   * - `'handler'`: a client that disconnects doesn't free the slot of a handler that still works, so at most `limit` handlers run at a
   *   time. Koa, Hono, Fastify, NestJS and wrapped handlers of `@weir/web` report the end of a handler. Express and `node:http` don't: there it is the same as `'response'`.
   * - `'response'`: even if the handler still works. Use it if your handlers don't end once their client has left, because such a handler
   *   would keep its slot for the whole `maxDuration`.
   *
   * Ignored without an adapter: `release`, `schedule` and `wrap` free the slot. Throws `WEIR_INVALID_OPTION` for any other value.
   *
   * @default 'handler'
   * @see `@weir/core/docs/guides/concurrency.md`
   */
  readonly releaseOn?: 'handler' | 'response'
}

const USUAL = 600_000
const SHORTEST = 1_000

/**
 * At most `limit` requests of a key in flight. There is no interval: a request keeps its slot (or as many slots as it costs) until it ends.
 * Adapters release it once the handler has ended and the response has been sent (`releaseOn`). `schedule` and `wrap` release it when the
 * function has settled. After `check` and `acquire` call `throttler.release(decision)`. With `limit: 1` the requests of a key run one after
 * another.
 *
 * @throws WeirError `WEIR_INVALID_OPTION`, `WEIR_UNKNOWN_OPTION`
 *
 * @example
 * throttle({ key: 'ip', limit: 10, algorithm: concurrency(), coordination: 'local' })
 */
export function concurrency(options: ConcurrencyOptions = {}): SlotAlgorithm {
  checkAlgorithmOptions('concurrency', options, ['maxDuration', 'releaseOn'], '{ maxDuration: "1m" }')
  const { maxDuration, releaseOn } = options
  const longest = maxDuration === undefined ? USUAL : parseDuration(maxDuration, 'maxDuration', SHORTEST, LONGEST_TIMER)
  const until = oneOf<Slots['releaseOn']>('releaseOn', releaseOn, ['handler', 'response'])
  return Object.freeze({
    name: 'concurrency()',
    id: 'concurrency',
    fields: 3,
    settings: () => ({ maxDuration: longest }),
    slots: Object.freeze({
      maxDuration: longest,
      releaseOn: until,
      unit: 'concurrent-requests',
      busy: 'Too many requests at the same time. Try again when one of them has ended.',
      without: ['interval', 'spans', 'cooldown', 'maxReservation'],
      expired: (policy: string) =>
        `Policy ${show(policy)} freed a slot that was not released within ${longest} ms: its request has not ended, or ` +
        'throttler.release(decision) was not called. If requests take longer, raise "maxDuration".',
      whenEnded,
    }),
    local: (site) => new LocalSlots(site),
    shape: { kind: 'slots', coordinations: ['leased'] },
  } satisfies SlotAlgorithm)
}
