import type { MeetingPoint } from '../store/contract.ts'
import type { Reloadable } from './coordinator.ts'
import { isMadeAgain, type Place, placeOfCall } from './place.ts'

/** A throttler, and the line that made it last. */
interface Made {
  readonly throttler: Reloadable
  readonly site: NonNullable<Place['site']>
}

/** The property of the global object with the throttlers of this process: some hot reloads evaluate Weir again too. */
const MADE: unique symbol = Symbol.for('weir.made')

/**
 * Makes the throttler of an application that a development server reloads. The line that has made a throttler of the same names at the same
 * store gets that throttler again, with its new rules: it keeps its counts and its connection, and the old module needs no `close`.
 *
 * @param create makes a throttler with these policies
 */
export function throttlerOfReload<Throttler extends Reloadable>(
  { kind, address }: MeetingPoint,
  policies: readonly { readonly name?: string }[],
  create: () => Throttler,
): Throttler {
  if ('Deno' in globalThis || globalThis.process?.env['NODE_ENV'] !== 'development' || address === undefined) return create()
  const { site } = placeOfCall()
  if (site === undefined) return create()
  const host = globalThis as { [MADE]?: Map<string, Made> }
  const made = (host[MADE] ??= new Map())
  const id = [kind, address, site.file, ...policies.map(({ name = 'default' }) => name)].join('\n')
  const earlier = made.get(id)
  const keeps = earlier !== undefined && earlier.throttler.state !== 'closed' && isMadeAgain(earlier.site, site)
  const throttler = keeps ? (earlier.throttler as Throttler) : create()
  if (keeps) throttler.update(policies as readonly never[])
  made.set(id, { throttler, site })
  return throttler
}
