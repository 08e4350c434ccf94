import { LOW_PRIORITY, weirTests } from '@weir/tooling/vitest'

const ATTACK = 'test/attack/**'
const CLIENTS = 'test/clients/**'
const PACKED = 'test/packed/**'
/** Beside suites that need all of the processor, work of half a minute takes many. */
const PATIENCE = 3_600_000

export default weirTests({
  test: {
    projects: [
      { extends: true, test: { name: 'attack', exclude: [CLIENTS, PACKED] } },
      { extends: true, test: { name: 'clients', exclude: [ATTACK, PACKED], testTimeout: 30_000 } },
      // `pnpm test` runs it beside all others, with what these leave of the processor.
      {
        extends: true,
        test: { name: 'packed', exclude: [ATTACK, CLIENTS], setupFiles: [LOW_PRIORITY], testTimeout: PATIENCE, hookTimeout: PATIENCE },
      },
    ],
  },
})
