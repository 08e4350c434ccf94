/**
 * Whether PostgreSQL can't work with what a row holds, or with what was sent (data exceptions, violated constraints): others are none the
 * worse for it.
 */
export function isOfData(error: unknown): boolean {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^2[23]/.test(code)
}
