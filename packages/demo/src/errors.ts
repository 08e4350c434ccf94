/** A problem that the user can fix. It is shown as one line, with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The demo could not run, or failed later. It is shown as one line, with exit code 1. */
export class DemoError extends Error {
  override readonly name = 'DemoError'
}
