import { BUDGETS } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(BUDGETS)
