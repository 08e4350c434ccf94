import type { Algorithm } from '../algorithm.ts'
import { LocalFixedWindow } from './local.ts'

/**
 * Fixed windows of the Unix epoch. A file of its own: as the default it stands in every bundle, and the others need not. Its step
 * comes with what asks the store about each request.
 */
export const FIXED_WINDOW: Algorithm = Object.freeze({
  name: 'fixedWindow()',
  id: 'fixed-window',
  fields: 2,
  calendar: true,
  local: (site, { localTime }) => new LocalFixedWindow(site, localTime),
  // Its shared meters come with the store, so that applications without one don't carry them. Other algorithms bring theirs: who
  // does not import them has none of it.
  background: (site, exchange) => exchange.fixedWindow.background(site, exchange),
  periodic: (site, exchange) => exchange.fixedWindow.periodic(site, exchange),
  leased: (site, exchange) => exchange.fixedWindow.leased(site, exchange),
} satisfies Algorithm)
