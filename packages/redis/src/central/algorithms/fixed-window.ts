import { ADD_AND_BACK, keep, ordinalOf, used } from './epoch-counts.ts'
import { num, numberOf, type ServerAlgorithm, verdictBy } from './server-algorithm.ts'

/** Milliseconds that a window's key lives after the end that a process sends, because clocks differ. */
export const LINGER = 10_000

/** Windows of the epoch. Each has a key, and `u` contains the units taken. */
export const FIXED_WINDOW: ServerAlgorithm = {
  takes: 2,
  time: 1,
  field: 'u',
  empty: "'0'",
  look: (place) => `${used(place)}
local after = (used or 0) + units
if after <= limit and limit > 0 then ok, reply = true, ${num('after')}
else
  local told = -1 - (used or 0)
  reply = ${num('told')}
end`,
  keep,
  ...ADD_AND_BACK,
  keys(question, name, list) {
    list.push(`${name}:${ordinalOf(question)}`)
  },
  args(question, { time }, list) {
    const { parameters } = question.policy
    list.push(String(Math.ceil((ordinalOf(question) + 1) * (parameters[0] as number) - question.at) + LINGER), String(time))
  },
  read(reply, question) {
    const told = numberOf(reply)
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, ordinalOf(question)], question.at)
  },
}
