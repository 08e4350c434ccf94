import type { ContractContext } from './context.ts'

/** One behaviour of the store contract. */
export interface ContractCase {
  readonly title: string
  /** What of the fixture it can't do without. */
  readonly needs?: readonly ('lose' | 'goAway' | 'leftovers' | 'announcements' | 'statuses' | 'decisions' | 'rules' | 'leases')[]
  run(context: ContractContext): Promise<void>
}
