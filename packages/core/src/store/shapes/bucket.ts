import { ordinalAt } from '../../time/intervals.ts'
import type { StorePolicy } from '../policy.ts'
import { type Growth, isLarge, type News, NO_NEWS, REPEAT_AFTER } from './news.ts'

/** The announcements of a bucket so far. */
export interface BucketAnnounced {
  /** Monotonic time of the last announcement of a full bucket. */
  announcedAt: number
  /** It was announced to be near its limit, and its level has not been below half of that mark since. */
  hot: boolean
}

/**
 * Decides which messages follow from a write to a bucket, and notes them in `announced`. A full bucket is repeated every `REPEAT_AFTER` ms.
 *
 * @param levels units when the running cell began, as in `Cell.level`. They have drained since: if a unit fits is decided by the level now
 * @param now the time that the processes use, milliseconds since the epoch
 */
export function bucketNews(levels: Growth, announced: BucketAnnounced, policy: StorePolicy, now: number, monotonic: number): News {
  const { limit, hot, width, drain = 0 } = policy
  const { units } = levels
  if (units <= 0) return NO_NEWS
  const drained = drain * (now / width - ordinalAt(now, width))
  const before = levels.before - drained
  const after = levels.after - drained
  let announce = isLarge({ before, after, units }, policy)
  if (after > limit - 1 && (before <= limit - 1 || monotonic - announced.announcedAt >= REPEAT_AFTER)) announce = true
  if (before < hot / 2) announced.hot = false
  const isHot = after >= hot && !announced.hot
  if (isHot) {
    announced.hot = true
    announce = true
  }
  if (announce && after > limit - 1) announced.announcedAt = monotonic
  return { announce, hot: isHot }
}
