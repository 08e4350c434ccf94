import { invalidOption, show } from '../report/errors.ts'

/** 16 hexadecimal digits. Two processes of one cluster get the same with a chance of 2^-64 per pair. */
export function newNodeId(random: () => number): string {
  let id = ''
  for (let i = 0; i < 4; i++) {
    const value: unknown = random()
    if (typeof value !== 'number' || !(value >= 0 && value < 1)) {
      throw invalidOption('random', random, `a function that returns numbers from 0 to less than 1; it returned ${show(value)}`)
    }
    id += Math.floor(value * 0x10000)
      .toString(16)
      .padStart(4, '0')
  }
  return id
}
