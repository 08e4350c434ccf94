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
  shape: { kind: 'window', coordinations: ['background', 'periodic', 'leased'] },
} satisfies Algorithm)
