import { InvalidArgumentError } from 'commander'

/** A condition of `--fail-if`: more rejected requests than a number, or than a part of the requests that match a policy. */
export interface FailIf {
  readonly most: number
  readonly percent: boolean
}

/** Reads a condition such as `rejected>1%`. */
export function failIfOption(text: string): FailIf {
  const [, most, sign] = /^\s*rejected\s*>\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(text) ?? []
  if (most === undefined) throw new InvalidArgumentError("Use a condition such as 'rejected>1%' or 'rejected>100'.")
  return { most: Number(most), percent: sign === '%' }
}

/** Whether the condition applies. */
export function fails({ most, percent }: FailIf, rejected: number, requests: number): boolean {
  return percent ? 100 * rejected > most * requests : rejected > most
}
