import { invalidOption } from '../report/errors.ts'

/**
 * One of a few words; the first is the default.
 *
 * @param allowed the words with their meanings, for the message
 */
export function oneOf<Word extends string>(
  option: string,
  given: unknown,
  words: readonly [Word, ...Word[]],
  allowed: string = alternatives(words),
): Word {
  if (given === undefined) return words[0]
  if (!(words as readonly unknown[]).includes(given)) {
    throw invalidOption(option, given, allowed)
  }
  return given as Word
}

/** Words as a message lists them: `"a", "b" or "c"`. */
export function alternatives(words: readonly string[], last = 'or'): string {
  return words
    .map((word) => JSON.stringify(word))
    .join(', ')
    .replace(/, ([^,]*)$/, ` ${last} $1`)
}
