import { LEASES } from './lease-list.ts'
import { failWhenMutated } from './suite.ts'

failWhenMutated('the search through all that may happen to leases', LEASES)
