import { SLIDING } from './list.ts'
import { failWhenMutated } from './suite.ts'

failWhenMutated('a sliding window', SLIDING)
