import { weirTests } from '@weir/tooling/vitest'

// The page is built into a module of src that is not committed, so each run builds the current one. Sources are loaded once for all files.
export default weirTests({ test: { isolate: false, globalSetup: ['./page/build.js'] } })
