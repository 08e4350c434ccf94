import { invalidOption } from '../report/errors.ts'

/** One of a few words; the first is the default. */
export function oneOf<Word extends string>(option: string, given: unknown, words: readonly [Word, ...Word[]]): Word {
  if (given === undefined) return words[0]
  if (!(words as readonly unknown[]).includes(given)) {
    throw invalidOption(option, given, words.map((word) => JSON.stringify(word)).join(' or '))
  }
  return given as Word
}
