import type { ThrottlerOptions } from '../throttler/options.ts'
import { isMadeAgain, type Place, placeOfCall } from '../throttler/place.ts'
import { createThrottler, type Throttler } from '../throttler/throttler.ts'

/** A throttler, and the line that made it last. */
interface Made {
  readonly throttler: Throttler
  readonly site: NonNullable<Place['site']>
}

/** The property of the global object with the throttlers of this process: some hot reloads evaluate Weir again too. */
const MADE: unique symbol = Symbol.for('weir.made')

/**
 * Makes the throttler of an application that a development server reloads. The line that has made a throttler of the same names at the same
 * store gets that throttler again, with its new rules: it keeps its counts and its connection, and the old module needs no `close`.
 *
 * @throws WeirError for options that can't be used
 */
export function throttlerOfReload<Name extends string, Req>(options: ThrottlerOptions<Req, Name>): Throttler<Name, Req> {
  const { policies, store } = options
  if (globalThis.process?.env['NODE_ENV'] !== 'development' || store?.address === undefined) return createThrottler(options)
  const { site } = placeOfCall()
  if (site === undefined) return createThrottler(options)
  const host = globalThis as { [MADE]?: Map<string, Made> }
  const made = (host[MADE] ??= new Map())
  const id = [store.kind, store.address, site.file, ...policies.map(({ name = 'default' }) => name)].join('\n')
  const earlier = made.get(id)
  let throttler: Throttler<Name, Req>
  if (earlier !== undefined && earlier.throttler.state !== 'closed' && isMadeAgain(earlier.site, site)) {
    throttler = earlier.throttler as unknown as Throttler<Name, Req>
    throttler.update(policies)
  } else throttler = createThrottler(options)
  made.set(id, { throttler: throttler as unknown as Throttler, site })
  return throttler
}
