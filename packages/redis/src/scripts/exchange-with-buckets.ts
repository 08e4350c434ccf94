import { BUCKET } from './bucket.ts'
import { exchangeWith } from './exchange.ts'

/** The script for calls with entries of buckets. */
export const EXCHANGE_WITH_BUCKETS: string = exchangeWith(`do\n${BUCKET}\nend`)
