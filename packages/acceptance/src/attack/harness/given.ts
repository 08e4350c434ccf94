/** The attacked servers: each adapter with each major version of its framework, and `node:http` with the core. */
export const ADAPTERS = ['express4', 'express5', 'fastify4', 'fastify5', 'koa2', 'koa3', 'node'] as const
export type Adapter = (typeof ADAPTERS)[number]
/** The program under attack. `core` is a throttler without a server. */
export type Target = Adapter | 'core'
export type StoreKind = 'none' | 'memory' | 'redis'

/** The settings that the attacked process receives when it starts. */
export interface Given<Args = unknown> {
  readonly target: Target
  readonly store: StoreKind
  /** The URL of the process's Redis, if it has one. */
  readonly redis: string | undefined
  /** The namespace of this run, so that runs don't share keys. */
  readonly namespace: string
  readonly args: Args
}

/** Options for the start of an attacked process. */
export interface StartOptions {
  /** The size of the old generation in MB. */
  readonly heap?: number
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>
}
