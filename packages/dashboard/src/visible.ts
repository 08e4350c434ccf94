/**
 * Makes text of untrusted clients visible. Invisible characters, changes of direction and line breaks become their numbers, so that two
 * different keys never look the same.
 */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|\\(?=u\{)/gu, (one) => {
    return `\\u{${(one.codePointAt(0) as number).toString(16)}}`
  })
}
