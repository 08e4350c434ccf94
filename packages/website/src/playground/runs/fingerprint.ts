/** Combines several fingerprints into one: two lanes of FNV-1a, like the fingerprints of runs. */
export function fingerprintOf(parts: readonly (string | number)[]): string {
  let low = 0x811c9dc5
  let high = 0x9e3779b9
  for (const character of parts.join(' ')) {
    const code = character.charCodeAt(0)
    low = Math.imul(low ^ code, 0x01000193)
    high = Math.imul(high ^ code ^ (low >>> 16), 0x01000193)
  }
  return [high, low].map((lane) => (lane >>> 0).toString(16).padStart(8, '0')).join('')
}
