import { LEASED } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(LEASED)
