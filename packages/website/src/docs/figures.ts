import { choices, distance, expected, farRegions, leases, load } from './accuracy.ts'
import { algorithms } from './algorithms.ts'
import { straddling } from './attack.ts'
import { changelog } from './changelog.ts'
import { coordinations } from './coordinations.ts'
import { dashboard } from './dashboard.ts'
import { demo } from './demo.ts'
import { diagram } from './diagram.ts'
import type { Figure } from './figure.ts'
import { reference } from './reference/reference.ts'
import { rooms } from './rooms.ts'
import { scenes } from './scenes.ts'
import { sizing } from './sizing.ts'
import { smallLimits } from './small-limits.ts'
import { windows } from './windows.ts'

/** All figures, in the order in which they are generated. */
export const FIGURES: readonly Figure[] = [
  expected,
  choices,
  leases,
  load,
  distance,
  farRegions,
  coordinations,
  windows,
  algorithms,
  straddling,
  sizing,
  smallLimits,
  scenes,
  reference,
  rooms,
  diagram,
  demo,
  dashboard,
  changelog,
]
