import type { ClientSummary } from '../log/client.ts'
import type { UnknownRequest } from '../log/line-reader.ts'
import type { LogSummary } from '../log/logs.ts'
import { count, moment, plural, safeText } from '../terminal/text.ts'

/** Part of the requests that may be left out because they are out of order. Beyond it the plan would not represent the log. */
const FEW = 0.01

const WHY: Readonly<Record<UnknownRequest['why'], string>> = {
  client:
    'Its client is not known: there is none, or more than one address could be it. Pass --client-field with the field, or the number of the word before the time, that names it; for a list of addresses also --proxies.',
  time: 'Its time is not known. Log it with a date and a zone, or in seconds since the Unix epoch.',
  form: 'Its form is not known. Log in the Combined Log Format or JSON.',
  length: 'It is longer than 128 KiB.',
}

/** The number of unreadable requests, the first of them, and advice. */
function unknownText({ unknown, lines, firstUnknown }: LogSummary): string {
  if (firstUnknown === undefined) return ''
  const { file, line, why, text } = firstUnknown
  const which = `${count(unknown)} of ${plural(lines, 'line')} could not be read as a request. The first is line ${line} of ${safeText(file)}.`
  return `${which} ${WHY[why]} The line: ${safeText(text, 200)}`
}

/** The gaps of a plan that are large enough for the command to end with 2. */
export function missingIn(log: LogSummary): readonly string[] {
  const late = `${count(log.late)} of ${plural(log.records, 'request')} are out of order by too much, and left out. Sort the log by time, or give each server's log as a file of its own.`
  return [...(log.unknown > 0 ? [unknownText(log)] : []), ...(log.late > FEW * log.records ? [late] : [])]
}

/** Why there is no plan: no line could be read. */
export function nothingIn(log: LogSummary): string {
  const what = log.files.map((file) => safeText(file)).join(', ')
  if (log.unknown > 0) return `There is no request in ${what} that could be read. ${unknownText(log)}`
  return `There is no request in ${what}: ${count(log.lines)} lines, none in the Common or Combined Log Format or a JSON object with a time and a client.`
}

/** Why there is no plan: processes can't keep all keys of a policy. */
export function tooManyKeys(policy: string, time: number, maxKeys: number): string {
  const more = `The policy ${JSON.stringify(policy)} has more than ${count(maxKeys)} keys at one time, first at ${moment(time)} UTC.`
  return `${more} Processes with this "maxKeys" count all further keys as one. Pass a larger --max-keys and give your throttlers that "maxKeys", or replay a part of the log.`
}

/** The field that clients are counted by. */
export function clientText({ field, others }: ClientSummary, requests: number): string {
  const rest = others.map((other) => safeText(other)).join(', ')
  if (field === undefined) return `client: ${rest}`
  const lacking = requests - field.requests
  return `client: ${safeText(field.name)}${lacking > 0 ? `; ${plural(lacking, 'request')} without it count by ${rest}` : ''}`
}

/** Advice for logs whose requests seem to come from balancers. */
export function balancersText({ balancers }: ClientSummary, requests: number): string {
  if (balancers === undefined) return ''
  const { addresses, field } = balancers
  const from = `${count(balancers.requests)} of ${balancers.of < requests ? 'the first ' : ''}${plural(balancers.of, 'request')} come from ${plural(addresses.length, 'private address', 'private addresses')}`
  return `${from}, such as ${safeText(addresses[0] ?? '')}, and ${field} names other clients. If that is your balancer, pass --client-field ${field}`
}
