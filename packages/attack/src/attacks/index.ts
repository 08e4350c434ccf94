import type { Attack } from '../harness/attack.ts'
import { bytesPerKey } from './bytes-per-key.ts'
import { forgedAddresses } from './forged-addresses.ts'
import { keyFlood } from './key-flood.ts'
import { longKeys } from './long-keys.ts'
import { methods } from './methods.ts'
import { pipelining } from './pipelining.ts'
import { smallHeap } from './small-heap.ts'
import { spellingGenerated } from './spelling-generated.ts'
import { spellingNamed } from './spelling-named.ts'
import { spellingRouteKeys } from './spelling-route-keys.ts'

/** All attacks, in the order of the table. */
export const ATTACKS: readonly Attack[] = [
  bytesPerKey,
  smallHeap,
  longKeys,
  keyFlood,
  spellingNamed,
  spellingGenerated,
  spellingRouteKeys,
  methods,
  forgedAddresses,
  pipelining,
]
