import type { SharedCoordination, SharedShape } from '../algorithms/shape.ts'
import { BackgroundFixedWindow } from './fixed-window/background.ts'
import { later } from './later.ts'
import type { SharedForm } from './site.ts'
import { WindowMeter } from './window-meter.ts'

type Kind = SharedShape['kind']
type Forms = { readonly [K in Kind]?: (shape: Extract<SharedShape, { kind: K }>) => SharedForm }

/**
 * The meters whose counts are synced, by coordination and shape. The default algorithm's background meter comes with the store. Each other
 * one is loaded with the first policy that needs it.
 */
export const FORMS: Readonly<Record<SharedCoordination, Forms>> = {
  background: {
    window: () => (site, exchange) => new WindowMeter(site, exchange, (meter) => new BackgroundFixedWindow(meter), false),
    'sliding-window': later(async () => (await import('./sliding-window/shared.ts')).backgroundSlidingWindow),
    bucket: later(async () => {
      const { BackgroundBucket } = await import('./bucket/background.ts')
      return (shape) => (site, exchange) => new BackgroundBucket(site, exchange, shape)
    }),
  },
  periodic: {
    window: later(async () => {
      const { PublishedFixedWindow } = await import('./fixed-window/spans.ts')
      return () => (site, exchange) => new WindowMeter(site, exchange, (meter) => new PublishedFixedWindow(meter), true)
    }),
    'two-windows': later(async () => (await import('./sliding-counter/shared.ts')).publishedSlidingCounter),
  },
  leased: {
    window: later(async (exchange) => {
      const [{ leasedIntervals }] = await Promise.all([import('./leases/interval-quota.ts'), exchange.letWait()])
      return () => leasedIntervals
    }),
    slots: later(async (exchange) => {
      const [{ leasedSlots }] = await Promise.all([import('./leases/slot-quota.ts'), exchange.letWait()])
      return () => leasedSlots
    }),
  },
}

/** Makes the meters of an algorithm's shape. */
export function formOf(shape: SharedShape, coordination: SharedCoordination): SharedForm {
  return (FORMS[coordination][shape.kind] as (shape: SharedShape) => SharedForm)(shape)
}
