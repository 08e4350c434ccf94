/**
 * Returns whether PostgreSQL rejected the data of a row or of the call (data exceptions, violated constraints). Other keys can still be
 * counted then.
 */
export function isOfData(error: unknown): boolean {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^2[23]/.test(code)
}
