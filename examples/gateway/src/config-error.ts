/** A mistake in the configuration file, told as `file:line: what is wrong and what is allowed`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(file: string, line: number | undefined, message: string) {
    super(`${file}${line === undefined ? '' : `:${line}`}: ${message}`)
  }
}
