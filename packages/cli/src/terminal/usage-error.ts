/** What was asked for can't be done as it was asked. The command ends with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
