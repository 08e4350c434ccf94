import { BUDGETS } from './budget-list.ts'
import { failWhenMutated } from './suite.ts'

failWhenMutated('the search through all that may happen to reservations of leased units', BUDGETS)
