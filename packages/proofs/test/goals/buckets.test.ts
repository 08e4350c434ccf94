import { BUCKETS } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(BUCKETS)
