import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../options.ts'

/** Facts about the sender of a request. They come from the framework where there is one, because it knows its proxies. */
export interface Sender {
  readonly address: string | undefined
  /** Whether the sender speaks HTTPS. */
  readonly secure: boolean
}

/** A request, with what it is answered by. */
export interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly sender: () => Sender
}

/** That somebody may see the dashboard. */
export interface Grant {
  /** Until when, milliseconds since the Unix epoch. */
  readonly until: number
  /** The session that it belongs to, where people sign in. */
  readonly session: string | undefined
}

/** Signing in and out. Each answers the request. */
export interface SignIn {
  signIn(visit: Visit): Promise<void>
  /** Returns the session that is over, if there was one. */
  signOut(visit: Visit): string | undefined
}

/** Decides who may see the dashboard. Each choice of `authorize` becomes one gate. */
export interface Gate {
  readonly sessions: SignIn | undefined
  /** Undefined unless the sender may do this. Never rejects, and takes no longer than a second. */
  allow(visit: Visit, access: Access): Promise<Grant | undefined>
  /** Answers a request that was not allowed: one for the page, or one that a program has made. */
  reject(visit: Visit, wanted: 'page' | 'data'): void
  close(): void
}

/** The grant of clients that are checked again at each request. */
export const UNLIMITED: Grant = { until: Number.POSITIVE_INFINITY, session: undefined }
