import type { ClientSummary } from '../log/client.ts'
import type { UnknownRequest } from '../log/line-reader.ts'
import type { LogSummary } from '../log/logs.ts'
import { count, moment, plural, safeText } from '../terminal/text.ts'

/** Part of the requests that may be left out because they are out of order. Beyond it the plan would not represent the log. */
const FEW = 0.01

const WHY: Readonly<Record<UnknownRequest['why'], string>> = {
  client:
    'It has no client, or several addresses could be its client. Pass --client-field with the field that contains the client, or the number of the word before the time. For a list of addresses, pass --proxies too.',
  time: 'Its time is unreadable. Log it with a date and a zone, or in seconds since the Unix epoch.',
  form: 'Its format is unknown. Log in the Combined Log Format or JSON.',
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
  const late = `${count(log.late)} of ${plural(log.records, 'request')} are too far out of order, and left out. Sort the log by time, or give each server's log as a file of its own.`
  const torn = log.torn.map(
    (file) => `The compressed data of ${safeText(file)} is damaged, and its requests after the damage are left out.`,
  )
  return [...(log.unknown > 0 ? [unknownText(log)] : []), ...(log.late > FEW * log.records ? [late] : []), ...torn]
}

/** Why there is no plan: no line could be read. */
export function nothingIn(log: LogSummary): string {
  const files = log.files.map((file) => safeText(file)).join(', ')
  if (log.unknown > 0) return `No request in ${files} could be read. ${unknownText(log)}`
  return `There is no request in ${files}. None of its ${count(log.lines)} lines is in the Common or Combined Log Format, or is a JSON object with a time and a client.`
}

/** Why there is no plan: processes can't keep all keys of a policy. */
export function tooManyKeys(policy: string, time: number, maxKeys: number): string {
  const more = `The policy ${JSON.stringify(policy)} has more than ${count(maxKeys)} keys at one time, first at ${moment(time)} UTC.`
  return `${more} Processes with this "maxKeys" count all further keys as one. Pass a larger --max-keys and set the same "maxKeys" in your throttlers, or replay a part of the log.`
}

/** The field that clients are counted by. */
export function clientText({ field, others }: ClientSummary, requests: number): string {
  const rest = others.map((other) => safeText(other)).join(', ')
  if (field === undefined) return `client: ${rest}`
  const lacking = requests - field.requests
  return `client: ${safeText(field.name)}${lacking > 0 ? `, and ${rest} for ${plural(lacking, 'request')} without it` : ''}`
}

/** Advice for logs whose requests seem to come from balancers. */
export function balancersText({ balancers }: ClientSummary, requests: number): string {
  if (balancers === undefined) return ''
  const { addresses, field } = balancers
  const from = `${count(balancers.requests)} of ${balancers.of < requests ? 'the first ' : ''}${plural(balancers.of, 'request')} come from ${plural(addresses.length, 'private address', 'private addresses')}`
  return `${from}, such as ${safeText(addresses[0] ?? '')}, and ${field} names other clients. If that is your balancer, pass --client-field ${field}`
}
