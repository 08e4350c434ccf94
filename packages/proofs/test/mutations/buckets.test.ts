import { BUCKETS } from './bucket-list.ts'
import { failWhenMutated } from './suite.ts'

failWhenMutated('a bucket', BUCKETS)
