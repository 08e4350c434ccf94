/** A task that the command can't do as given. The command ends with 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
