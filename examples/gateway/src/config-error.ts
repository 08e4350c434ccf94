/** A mistake in the configuration file. The message has the form `file:line: the mistake and the allowed values`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'

  constructor(file: string, line: number | undefined, message: string) {
    super(`${file}${line === undefined ? '' : `:${line}`}: ${message}`)
  }
}
