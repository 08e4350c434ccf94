import { parseDuration } from '@weir/core'
import { InvalidArgumentError } from 'commander'

/** Reads a whole number of an option. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() === '' || !Number.isInteger(value) || value < least || value > most)
      throw new InvalidArgumentError(`Use a whole number from ${least} to ${most}.`)
    return value
  }
}

/** Reads a duration such as `500ms` or `1m`, in milliseconds. */
export function durationOption(most: number): (text: string) => number {
  return (text) => {
    try {
      return parseDuration((/^\d+(\.\d+)?$/.test(text) ? Number(text) : text) as never, 'duration', 0, most)
    } catch {
      throw new InvalidArgumentError(`Use a duration such as 500ms or 2s, at most ${most / 1_000} s.`)
    }
  }
}
