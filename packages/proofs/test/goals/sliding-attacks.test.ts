import { SLIDING_ATTACKS } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(SLIDING_ATTACKS)
