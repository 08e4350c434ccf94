import { RESETS } from './reset-list.ts'
import { failWhenMutated } from './suite.ts'

failWhenMutated('a reset', RESETS)
