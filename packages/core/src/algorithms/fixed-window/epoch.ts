import type { Algorithm } from '../algorithm.ts'
import { LocalFixedWindow } from './local.ts'

/**
 * Fixed windows of the Unix epoch. A file of its own: every bundle contains the default, but not the other windows. Its step comes with the
 * code of central policies.
 */
export const FIXED_WINDOW: Algorithm = Object.freeze({
  name: 'fixedWindow()',
  id: 'fixed-window',
  fields: 2,
  calendar: true,
  local: (site, { localTime }) => new LocalFixedWindow(site, localTime),
  shape: { kind: 'window', coordinations: ['background', 'periodic', 'leased'] },
} satisfies Algorithm)
