/** The input of the program. */
export function input<Input>(): Input {
  return JSON.parse(process.argv[2] as string) as Input
}

/** Hands the program's result over. */
export function report(result: unknown): void {
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
