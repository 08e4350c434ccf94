import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../options.ts'

/** Facts about the sender of a request. They come from the framework where there is one, because it knows its proxies. */
export interface Sender {
  readonly address: string | undefined
  /** Whether the sender speaks HTTPS. */
  readonly secure: boolean
}

/** A request, its response, and its sender. */
export interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly sender: () => Sender
  /** The path under which a framework has mounted the dashboard, if only the framework knows it. */
  readonly mount?: string | undefined
}

/** The right to see the dashboard. */
export interface Grant {
  /** End of the right, in milliseconds since the Unix epoch. */
  readonly until: number
  /** The session of the right, if there is a sign-in. */
  readonly session: string | undefined
  /** The name that `authorize` returned, for the audit log. */
  readonly name?: string
}

/** Signs in and out. Both methods answer the request. */
export interface SignIn {
  signIn(visit: Visit): Promise<void>
  /** Returns the session that has ended, if there was one. */
  signOut(visit: Visit): string | undefined
}

/** Decides who may see the dashboard. Each choice of `authorize` becomes one gate. */
export interface Gate {
  readonly sessions: SignIn | undefined
  /** Returns undefined unless the sender may do this. Never rejects, and takes at most a second. */
  allow(visit: Visit, access: Access): Promise<Grant | undefined>
  /** Answers a request that was not allowed, either with a page or with data for a program. */
  reject(visit: Visit, wanted: 'page' | 'data'): void
  close(): void
}

/** The grant without an end or a session, because these clients are checked again with each request. */
export const UNLIMITED: Grant = { until: Number.POSITIVE_INFINITY, session: undefined }
