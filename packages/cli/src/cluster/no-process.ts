import { UsageError } from '../terminal/usage-error.ts'

/** No process uses the store, or the rules, so a change would reach none. The command ends with 1. */
export class NoProcess extends UsageError {}

/** For a store without any process. */
export function noProcess(): NoProcess {
  return new NoProcess('No process uses this namespace. Check --store and --namespace.')
}
