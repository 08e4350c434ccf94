/**
 * `URL.parse`, which Node.js 20 does not have; undefined where it gives null.
 *
 * Not by `URL.canParse`: of some texts that are no URL it was seen to say otherwise.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
