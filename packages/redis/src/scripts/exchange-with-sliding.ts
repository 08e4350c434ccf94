import { exchangeWith } from './exchange.ts'
import { SLIDING } from './sliding-window.ts'

/** The exchange of calls that hold entries of sliding windows. */
export const EXCHANGE_WITH_SLIDING: string = exchangeWith(`do\n${SLIDING}\nend`)
