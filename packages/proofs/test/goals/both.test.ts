import { BOTH } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(BOTH)
