import { FIXED } from './list.ts'
import { failWhenMutated } from './suite.ts'

failWhenMutated('a fixed window', FIXED)
