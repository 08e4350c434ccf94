/** A program's request for permits. */
export interface Ask {
  readonly policy: string
  readonly key: string
  readonly permits: number
}

/** The error for an invalid request. Its message describes a valid one. */
export class BadAsk extends Error {
  override readonly name: string = 'BadAsk'
}

/** The longest key in characters. */
const LONGEST_KEY = 256

/**
 * Reads the body of a request for permits: `{ "policy": "reports", "key": "ann", "permits": 1 }`, with one permit by default.
 *
 * @throws BadAsk for any other body, an unknown policy, a key that is too long, or a number of permits that is not above 0
 */
export function readAsk(body: string, policies: readonly string[]): Ask {
  let given: unknown
  try {
    given = JSON.parse(body)
  } catch {
    throw new BadAsk('The body must be JSON, such as {"policy": "reports", "key": "ann", "permits": 1}.')
  }
  const { policy, key, permits = 1 } = (given ?? {}) as Partial<Record<keyof Ask, unknown>>
  if (typeof policy !== 'string' || !policies.includes(policy)) throw new BadAsk(`"policy" must be one of ${policies.join(', ')}.`)
  if (typeof key !== 'string' || key.length === 0 || key.length > LONGEST_KEY)
    throw new BadAsk(`"key" must be a string of 1 to ${LONGEST_KEY} characters.`)
  if (typeof permits !== 'number' || !(permits > 0)) throw new BadAsk('"permits" must be a number above 0.')
  return { policy, key, permits }
}
