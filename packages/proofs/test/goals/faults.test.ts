import { FAULTS } from './picks.ts'
import { holdGoals } from './short.ts'

holdGoals(FAULTS)
