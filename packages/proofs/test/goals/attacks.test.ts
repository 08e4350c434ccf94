import { ATTACKS } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(ATTACKS)
