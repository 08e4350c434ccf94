// A setup file of every test. `Math.random` returns the same numbers in each run. The product uses it for jitter and for the ids of
// processes.
import { relative } from 'node:path'
import { expect } from 'vitest'
import { SEED } from './seed.js'
import { ROOT } from './workspace.js'

// Files that run in one process, and files that share a server, must not make the same ids.
let state = SEED | 0
for (const character of relative(ROOT, expect.getState().testPath ?? '')) state = (Math.imul(state, 31) + character.charCodeAt(0)) | 0

/** mulberry32 */
Math.random = () => {
  state = (state + 0x6d2b79f5) | 0
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
}
