import { exchangeWith } from './exchange.ts'
import { SLIDING } from './sliding-window.ts'

/** The script for calls with entries of sliding windows. */
export const EXCHANGE_WITH_SLIDING: string = exchangeWith(`do\n${SLIDING}\nend`)
