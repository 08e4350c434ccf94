/** The input of the program. */
export function input<Input>(): Input {
  return JSON.parse(process.argv[2] as string) as Input
}

/** Returns the program's result to its parent. */
export function report(result: unknown): void {
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
