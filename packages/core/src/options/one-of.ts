import { invalidOption } from '../report/errors.ts'
import { alternatives } from '../report/show.ts'

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
