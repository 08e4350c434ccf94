/** Everything between the network and a handler: each adapter with each major of its framework, and `node:http` with the core. */
export const ADAPTERS = ['express4', 'express5', 'fastify4', 'fastify5', 'koa2', 'koa3', 'node'] as const
export type Adapter = (typeof ADAPTERS)[number]
/** The program under attack. `core` is a throttler without a server. */
export type Target = Adapter | 'core'
export type StoreKind = 'none' | 'memory' | 'redis'

/** The settings that the attacked process receives when it starts. */
export interface Given<Args = unknown> {
  readonly target: Target
  readonly store: StoreKind
  /** How the process reaches its Redis, where it has one. */
  readonly redis: string | undefined
  /** The namespace of this run, so that runs don't share keys. */
  readonly namespace: string
  readonly args: Args
}

/** How a process is started. */
export interface StartOptions {
  /** Size of the old generation, MB. */
  readonly heap?: number
  /** More environment variables. */
  readonly env?: Readonly<Record<string, string>>
}
