import type { ContractContext } from './context.ts'

/** One behaviour of the store contract. */
export interface ContractCase {
  readonly title: string
  /** Parts of the fixture that the case requires. */
  readonly needs?: readonly (
    | 'lose'
    | 'goAway'
    | 'leftovers'
    | 'announcements'
    | 'statuses'
    | 'decisions'
    | 'rules'
    | 'leases'
    | 'reservations'
    | 'audit'
  )[]
  run(context: ContractContext): Promise<void>
}
