/** Whether a value can be the cost of a request. */
export function isCost(cost: unknown): cost is number {
  return typeof cost === 'number' && cost > 0 && cost < Number.POSITIVE_INFINITY
}

/** Whether a value can be the limit of one key. */
export function isLimit(limit: unknown): limit is number {
  return typeof limit === 'number' && (limit >= 1 || limit === 0)
}
