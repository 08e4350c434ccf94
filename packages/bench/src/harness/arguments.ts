import { InvalidArgumentError } from 'commander'

/** Reads an argument of a command line: whole numbers of at least 1. */
export function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return value
}

/** Reads an argument of a command line: numbers above 0. */
export function positive(text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new InvalidArgumentError('It must be a number > 0.')
  return value
}

/** Collects the values of an option that may be repeated. */
export function each<T>(parse: (text: string) => T): (text: string, before?: readonly T[]) => readonly T[] {
  const given: T[] = []
  return (text) => {
    given.push(parse(text))
    return given
  }
}
