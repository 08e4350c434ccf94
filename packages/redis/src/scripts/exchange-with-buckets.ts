import { BUCKET } from './bucket.ts'
import { exchangeWith } from './exchange.ts'

/** The exchange of calls that hold entries of buckets. */
export const EXCHANGE_WITH_BUCKETS: string = exchangeWith(`do\n${BUCKET}\nend`)
