import { warnProcess } from '../report/errors.ts'
import { placeIn } from './place.ts'
import type { Stack } from './stack.ts'

/** How many throttlers made at one place are a mistake. */
const MANY_AT_ONE_PLACE = 10
const MOST_PLACES = 1_000

let said = false
const places = new Map<string, number>()

/**
 * Warns, once in a process, of throttlers that are created again and again at one place and never closed.
 *
 * @param by the stack of the call that made one more
 * @param open the number of open throttlers then
 * @returns whether it has warned, now or before
 */
export function noticeMany(by: Stack, open: number): boolean {
  if (said) return true
  // A module that is loaded again has another query.
  const place = placeIn(by).text.replace(/\?[^:)]*/, '')
  const made = (places.get(place) ?? 0) + 1
  if (places.size < MOST_PLACES) places.set(place, made)
  if (made < MANY_AT_ONE_PLACE) return false
  said = true
  places.clear()
  warnProcess(
    'WEIR_WARN_MANY_THROTTLERS',
    `${open} throttlers are open, and more are made at ${place}. If throttle() or createThrottler() is called for each request, nothing is limited. Call it once, when your application starts. If a hot reload evaluates modules again, call "await throttler.close()" before.`,
  )
  return true
}
