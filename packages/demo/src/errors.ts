/** Something that the user can set right: shown as one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The demo could not run or broke on its way: shown as one line, exit code 1. */
export class DemoError extends Error {
  override readonly name = 'DemoError'
}
