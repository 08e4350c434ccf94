import { weirTests } from '@weir/tooling/vitest'

const DOCS = 'test/docs/**'
const PLAYGROUND = 'test/playground/**'
const SITE = 'test/site/**'

export default weirTests({
  test: {
    projects: [
      // Otherwise Node.js loads this package's copy of graphql and Vite another one, and they reject each other's schemas.
      { extends: true, test: { name: 'docs', exclude: [PLAYGROUND, SITE], server: { deps: { inline: ['graphql-query-complexity'] } } } },
      // Builds the current page, not the last built one. No test here depends on its duration.
      {
        extends: true,
        test: { name: 'playground', exclude: [DOCS, SITE], globalSetup: ['./src/playground/build.js'], testTimeout: 120_000 },
      },
      { extends: true, test: { name: 'site', exclude: [DOCS, PLAYGROUND] } },
    ],
  },
})
