import { HARDEST } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(HARDEST)
