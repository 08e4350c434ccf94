import type { Counter, CounterHost } from './counter.ts'
import { FixedProof } from './fixed-proof.ts'
import { FixedPublished } from './fixed-published.ts'
import type { Policy } from './policy.ts'
import { SlidingProof } from './sliding-proof.ts'
import type { Overflow } from './throttler-options.ts'
import { TwoWindow } from './two-window.ts'

/** The counter that a policy's window and enforcement ask for. */
export function makeCounter(policy: Policy, host: CounterHost, maxKeys: number, overflow: Overflow): Counter {
  if (policy.window === 'sliding' && policy.enforcement === 'proof') return new SlidingProof(policy, host, maxKeys, overflow)
  if (policy.window === 'sliding') return new TwoWindow(policy, host, maxKeys, overflow)
  return policy.enforcement === 'published'
    ? new FixedPublished(policy, host, maxKeys, overflow)
    : new FixedProof(policy, host, maxKeys, overflow)
}
