/** Returns the SQLSTATE of an error: five characters. Errors of connections have longer codes, and others have none. */
export function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}
