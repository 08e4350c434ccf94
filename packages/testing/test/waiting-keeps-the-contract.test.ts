import {
  type AnyAlgorithm,
  type Coordination,
  concurrency,
  fixedWindow,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@weir/core'
import { describe, test } from 'vitest'
import { waitingContract } from '../src/index.ts'

/** Every pair of an algorithm and a coordination. */
const CELLS: readonly (readonly [name: string, algorithm: AnyAlgorithm, ...coordinations: Coordination[]])[] = [
  ['fixedWindow()', fixedWindow(), 'local', 'background', 'periodic', 'leased', 'central'],
  ["fixedWindow({ start: 'first-request' })", fixedWindow({ start: 'first-request' }), 'local', 'central'],
  ['slidingWindow()', slidingWindow(), 'local', 'background', 'central'],
  ['slidingCounter()', slidingCounter(), 'local', 'periodic', 'central'],
  ['slidingLog()', slidingLog(), 'local', 'central'],
  ['tokenBucket()', tokenBucket(), 'local', 'background', 'central'],
  // A warm-up so short and slight that units cost the same as without it.
  ['tokenBucket({ warmUp })', tokenBucket({ warmUp: { duration: 1, coldFactor: 1.0001 } }), 'local', 'central'],
  ['leakyBucket()', leakyBucket(), 'local', 'background', 'central'],
  ['leakyBucket({ burst: 200 })', leakyBucket({ burst: 200 }), 'local', 'background', 'central'],
  ['concurrency()', concurrency(), 'local', 'leased'],
]

const TURNS = 'processes are served by the number of requests that wait with them'

/** Promises that a cell doesn't keep. */
const WITHOUT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "fixedWindow({ start: 'first-request' }), central": { [TURNS]: 'a process with few requests gets three quarters of its part' },
  'slidingWindow(), background': { [TURNS]: 'a process with few requests gets a third more than its part' },
  'slidingWindow(), central': { [TURNS]: 'a process with few requests gets a quarter more than its part' },
  'slidingCounter(), central': { [TURNS]: 'capacity returns in so small steps that chance decides which process gets it' },
  'tokenBucket({ warmUp }), central': { [TURNS]: 'the store reserves nothing for it, so chance decides which process gets a token' },
  'leakyBucket({ burst: 200 }), central': { [TURNS]: 'a process with few requests gets half more than its part of a flood' },
}

for (const [name, algorithm, ...coordinations] of CELLS) {
  for (const coordination of coordinations) {
    const cell = `${name}, ${coordination}`
    waitingContract(cell, { algorithm, coordination }, { describe, test, without: WITHOUT[cell] ?? {} })
  }
}
