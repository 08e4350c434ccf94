import { invalidOption } from '../report/errors.ts'
import { alternatives } from '../report/show.ts'

/**
 * Reads an option that is one of a few words. The first is the default.
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
