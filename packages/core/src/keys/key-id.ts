/** The label of the counter that keys share if the table is full. */
export const SHARED_LABEL = '\u0000overflow'

/** The label of all keys: their reset is stored and announced as the reset of a key with this label. */
export const ALL_LABEL = '\u0000all'

/** The store key of a user's key. It never starts with a single NUL, so no user's key can be mistaken for a label. */
export function idOfKey(key: string): string {
  return key.startsWith('\u0000') ? `\u0000${key}` : key
}

/** The user's key of a store key that is no label. */
export function keyOfId(id: string): string {
  return id.startsWith('\u0000\u0000') ? id.slice(1) : id
}
