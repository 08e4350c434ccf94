import { SLOTS } from './slot-list.ts'
import { failWhenMutated } from './suite.ts'

failWhenMutated('the search through all that may happen to slots of requests in flight', SLOTS)
