import type { Decision, Throttler } from '@weir/core'

/** What the dashboard needs of a throttler: one of any policies and requests will do. */
export interface DashboardThrottler extends Pick<Throttler, 'nodeId' | 'inspected' | 'on' | 'block' | 'unblock' | 'reset' | 'warn'> {
  readonly policies: readonly { readonly name: string }[]
  /** In the order of the policies. */
  readonly rules: readonly { readonly key?: unknown }[]
  peek(key: string, cost?: number): Decision
}
