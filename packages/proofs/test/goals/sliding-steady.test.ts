import { SLIDING_STEADY } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(SLIDING_STEADY)
