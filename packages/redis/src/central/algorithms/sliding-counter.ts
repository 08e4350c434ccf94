import { ADD_AND_BACK, keep, ordinalOf, used } from './epoch-counts.ts'
import { num, type Place, pair, pairOf, type ServerAlgorithm, unmarked, verdictBy } from './server-algorithm.ts'

/** The same tolerance as in the step, because sums of fractions are rounded. A part of a limit up to 1e6. */
const ROUNDING = 1e-10

/** Sets `earlier` to the units of the previous window. */
function earlier(place: Place): string {
  const read = `earlier = redis.call('HGET', ${place.key(1)}, 'u')`
  return `local ${read}
${unmarked(place, 'earlier', read, 1)}`
}

/**
 * The weighted counter of two windows of the epoch. Each has a key, and `u` contains the units taken. `look` reads both windows. A refund
 * changes the window that its units were taken in. Units that a reservation of that window adds count in the running one.
 */
export const SLIDING_COUNTER: ServerAlgorithm = {
  takes: 3,
  time: 2,
  field: 'u',
  empty: "'0'",
  debts: 1,
  look: (place) => `${earlier(place)}
${used(place)}
local previous, after = tonumber(earlier or 0), (used or 0) + units
if previous * ${place.arg(1)} + after <= limit + math.min(limit, 1e6) * ${ROUNDING} and limit > 0 then ok, reply = true, ${pair('after', 'previous')}
else
  local told = -1 - (used or 0)
  reply = { ${num('told')}, ${num('previous')} }
end`,
  keep,
  ...ADD_AND_BACK,
  keys(question, name, list, time) {
    const { kind, policy } = question
    const ordinal = ordinalOf(question)
    const other =
      kind === 'give-back' || kind === 'use' || kind === 'settle' ? Math.max(ordinal, ordinalOf({ policy, at: time })) : ordinal - 1
    list.push(`${name}:${ordinal}`, `${name}:${other}`)
  },
  args(question, { time }, list) {
    const interval = question.policy.parameters[0] as number
    const ahead = (ordinalOf(question) + 1) * interval - question.at
    list.push(String(Math.ceil(3 * interval)), String(Math.min(1, Math.max(0, ahead / interval))), String(time))
  },
  read(reply, question) {
    const [told, previous] = pairOf(reply)
    return verdictBy(question, told >= 0, [previous, told >= 0 ? told : -1 - told, ordinalOf(question)], question.at)
  },
}
