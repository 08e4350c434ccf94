import { type AnyPolicyOptions, concurrency, slidingWindow, tokenBucket } from '@weir/core'

/** Policies whose limit changes while there are many keys. */
export const POLICIES = {
  'fixedWindow local': { interval: '1h', coordination: 'local' },
  'fixedWindow background': { interval: '1h' },
  'slidingWindow background': { interval: '1h', algorithm: slidingWindow() },
  'tokenBucket local': { interval: '1h', algorithm: tokenBucket(), coordination: 'local' },
  'tokenBucket background': { interval: '1h', algorithm: tokenBucket() },
  'fixedWindow leased': { interval: '1h', coordination: 'leased' },
  'concurrency leased': { algorithm: concurrency(), coordination: 'leased' },
} as const satisfies Readonly<Record<string, Omit<AnyPolicyOptions, 'limit'>>>

export type UpdateKind = keyof typeof POLICIES
export const UPDATE_KINDS: readonly UpdateKind[] = Object.keys(POLICIES) as UpdateKind[]
