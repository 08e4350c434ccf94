import { STEADY } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(STEADY)
