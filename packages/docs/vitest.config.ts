import { weirTests } from '@weir/tooling/vitest'

// Otherwise Node.js loads this package's copy of graphql and Vite another one, and they reject each other's schemas.
export default weirTests({ test: { server: { deps: { inline: ['graphql-query-complexity'] } } } })
