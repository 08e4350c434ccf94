import { weirTests } from './src/vitest.js'

export default weirTests({ test: { hookTimeout: 60_000 } })
