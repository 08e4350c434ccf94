/**
 * Text of untrusted clients as people may see it: characters that show nothing, that turn the text around or that would begin another
 * line stand as their numbers, so that two keys that differ look different, and none shows as something else.
 */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|\\(?=u\{)/gu, (one) => {
    return `\\u{${(one.codePointAt(0) as number).toString(16)}}`
  })
}
