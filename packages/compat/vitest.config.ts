import { weirTests } from '@weir/tooling/vitest'

export default weirTests()
