import { weirTests } from '@weir/tooling/vitest'

// The page is built into a module of src, which is not committed: as it is now, not as it was at the last install.
// Sources are loaded once for all files.
export default weirTests({ test: { isolate: false, globalSetup: ['./page/build.js'] } })
