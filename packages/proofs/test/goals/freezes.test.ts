import { FREEZES } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(FREEZES)
