import type { Counter, CounterHost } from '../decide/limiter.ts'
import type { Policy } from '../decide/policy.ts'
import type { Overflow } from '../throttler/options.ts'
import { FixedProof } from './fixed-window/background.ts'
import { FixedPublished } from './fixed-window/spans.ts'
import { TwoWindow } from './sliding-counter/spans.ts'
import { SlidingProof } from './sliding-window/background.ts'

/** The counter that a policy's window and enforcement ask for. */
export function makeCounter(policy: Policy, host: CounterHost, maxKeys: number, overflow: Overflow): Counter {
  if (policy.window === 'sliding' && policy.enforcement === 'proof') return new SlidingProof(policy, host, maxKeys, overflow)
  if (policy.window === 'sliding') return new TwoWindow(policy, host, maxKeys, overflow)
  return policy.enforcement === 'published'
    ? new FixedPublished(policy, host, maxKeys, overflow)
    : new FixedProof(policy, host, maxKeys, overflow)
}
