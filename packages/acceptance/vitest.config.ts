import { LOW_PRIORITY, weirTests } from '@weir/tooling/vitest'

const ATTACK = 'test/attack/**'
const CLIENTS = 'test/clients/**'
const PACKED = 'test/packed/**'
/** Milliseconds. Beside suites that use all processors, work of half a minute takes many minutes. */
const PATIENCE = 3_600_000

export default weirTests({
  test: {
    projects: [
      { extends: true, test: { name: 'attack', exclude: [CLIENTS, PACKED] } },
      { extends: true, test: { name: 'clients', exclude: [ATTACK, PACKED], testTimeout: 30_000 } },
      // `pnpm test` runs this project beside all others, with the remaining processor time.
      {
        extends: true,
        test: {
          name: 'packed',
          exclude: [ATTACK, CLIENTS],
          globalSetup: ['./test/packed/pack-once.ts'],
          setupFiles: [LOW_PRIORITY],
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
    ],
  },
})
