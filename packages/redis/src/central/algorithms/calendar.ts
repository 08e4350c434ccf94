import { FIXED_WINDOW, LINGER } from './fixed-window.ts'
import { numberOf, type ServerAlgorithm, timeIn, verdictBy } from './server-algorithm.ts'

/** Intervals of a calendar, which the process computes. Like windows of the epoch, each has its own key. */
export const CALENDAR: ServerAlgorithm = {
  ...FIXED_WINDOW,
  keys({ policy: { parameters } }, name, list) {
    list.push(`${name}:${parameters[1]}`)
  },
  args({ policy: { parameters }, at }, request, list) {
    list.push(String(Math.max(0, Math.ceil((parameters[0] as number) - at)) + LINGER), timeIn(request))
  },
  read(reply, question, time) {
    const [end = 0, begin = 0] = question.policy.parameters
    const told = numberOf(reply)
    return verdictBy(question, told >= 0, [told >= 0 ? told : -1 - told, begin, end], time)
  },
}
