import { REQUEST_REJECTIONS, SLOT, SLOTS } from '../report/requests.ts'
import type { Coordinated } from '../throttler/coordinator.ts'
import { type NodeStatus, POLICY_NUMBERS, POLICY_TEXTS, statusOfAll } from './node-status.ts'

/** Longest text of a status, in UTF-16 units. What does not fit is left out: first keys, then policies. */
export const LONGEST_STATUS = 8_192
/** Longer keys are not told, as a part of one could not be acted upon. */
const LONGEST_KEY = 257

/** The status of a node, of all the throttlers in it that share a store, as it travels. */
export function tellStatus(throttlers: readonly Coordinated[], startedAt: number, now: number): string {
  return formatStatus(statusOfAll(throttlers, startedAt, now))
}

/** A status as it travels. */
export function formatStatus(status: NodeStatus): string {
  const short = ({ key }: { readonly key: string }) => key.length <= LONGEST_KEY
  const top = status.top.filter(short)
  const waiting = status.waiting.filter(short)
  const wouldReject = status.wouldReject.filter(short)
  const policies = [...status.policies]
  for (;;) {
    const text = JSON.stringify({ ...status, policies, top, waiting, wouldReject })
    if (text.length <= LONGEST_STATUS || (wouldReject.pop() ?? top.pop() ?? waiting.pop() ?? policies.pop()) === undefined) return text
  }
}

/**
 * Another node's status, for programs that look at a cluster through its store (`HeartbeatReply.statuses`). Undefined for what is none: it may
 * be of another version, and a store's content is not to be trusted.
 */
export function parseStatus(text: string): NodeStatus | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(value)) return undefined
  const { policies, top, requests, waiting, wouldReject, rules } = value
  const good =
    ['node', 'label', 'state'].every((name) => typeof value[name] === 'string') &&
    ['uptimeMs', 'storeDownMs', 'roundTripMs', 'failures', 'clockOffsetMs'].every((name) => Number.isFinite(value[name])) &&
    isRequests(requests) &&
    Array.isArray(policies) &&
    policies.every(isPolicyStatus) &&
    Array.isArray(top) &&
    top.every(isUsage) &&
    Array.isArray(waiting) &&
    waiting.every(isWaitingKey) &&
    Array.isArray(wouldReject) &&
    wouldReject.every(isKeyRejections) &&
    (rules === undefined || isRules(rules))
  return good ? (value as unknown as NodeStatus) : undefined
}

function isPolicyStatus(value: unknown): boolean {
  if (!isRecord(value)) return false
  return POLICY_TEXTS.every((name) => typeof value[name] === 'string') && POLICY_NUMBERS.every((name) => Number.isFinite(value[name]))
}

function isRequests(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { allowed, rejected, reasons, history } = value
  if (![allowed, rejected].every(isCount) || !isRecord(reasons) || !isRecord(history)) return false
  return (
    REQUEST_REJECTIONS.every((reason) => isCount(reasons[reason])) &&
    history['slot'] === SLOT &&
    isCount(history['ended']) &&
    [history['allowed'], history['rejected']].every((list) => Array.isArray(list) && list.length <= SLOTS && list.every(isCount))
  )
}

function isCount(value: unknown): boolean {
  return Number.isFinite(value) && (value as number) >= 0
}

function isWaitingKey(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['policy'] === 'string' &&
    typeof value['key'] === 'string' &&
    Number.isFinite(value['requests']) &&
    Number.isFinite(value['longest'])
  )
}

function isKeyRejections(value: unknown): boolean {
  return isRecord(value) && typeof value['policy'] === 'string' && typeof value['key'] === 'string' && isCount(value['rejected'])
}

/** Problems are at most so long when they are told. */
const LONGEST_TEXT = 300

function isRules(value: unknown): boolean {
  if (!isRecord(value)) return false
  const { version, digest, from, rejected, away } = value
  const isVersion = (one: unknown) => one === undefined || (Number.isSafeInteger(one) && (one as number) >= 1)
  const isText = (one: unknown) => one === undefined || (typeof one === 'string' && one.length <= LONGEST_TEXT)
  if (rejected !== undefined && !(isRecord(rejected) && isVersion(rejected['version']) && typeof rejected['problem'] === 'string'))
    return false
  return isVersion(version) && [digest, from, away, (rejected as { problem?: string } | undefined)?.problem].every(isText)
}

function isUsage(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value['policy'] === 'string' &&
    typeof value['key'] === 'string' &&
    Number.isFinite(value['used']) &&
    Number.isFinite(value['own'])
  )
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
