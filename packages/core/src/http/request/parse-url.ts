/**
 * Does the same as `URL.parse`, which Node.js 20 does not have, but returns undefined instead of null.
 *
 * It does not use `URL.canParse`, because that accepted some texts that are no URL.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
