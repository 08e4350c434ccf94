import { randomBytes, timingSafeEqual } from 'node:crypto'

/** A signed-in client. The cookie contains the whole session, so no process needs to store it. */
export interface Session {
  readonly id: string
  /** Start of the session, and time of its cookie, in milliseconds since the Unix epoch. */
  readonly started: number
  readonly seen: number
}

/** Milliseconds. A session ends this long after its last use (`IDLE`), and this long after its start (`LONGEST`). */
const IDLE = 3_600_000
const LONGEST = 12 * 3_600_000
/** Milliseconds by which clocks of other processes may be ahead. */
const SKEW = 60_000
/** Milliseconds. An older cookie is replaced. */
const RENEWED = 60_000

type Sign = (text: string) => string

const TOKEN = /^([0-9a-z]{1,10})\.([0-9a-z]{1,10})\.([\w-]{22})\.([\w-]{43})$/

export function newSession(now: number): Session {
  return { id: randomBytes(16).toString('base64url'), started: now, seen: now }
}

/** The cookie's text: both times, the id, and their signature. */
export function tokenOf({ id, started, seen }: Session, sign: Sign): string {
  const text = `${started.toString(36)}.${seen.toString(36)}.${id}`
  return `${text}.${sign(text)}`
}

/** The session of a token. Undefined if the token is invalid or the session has ended. */
export function sessionOf(token: string, sign: Sign, now: number): Session | undefined {
  const parts = TOKEN.exec(token)
  if (parts === null) return undefined
  const [, first = '', second = '', id = '', signature = ''] = parts
  if (!timingSafeEqual(Buffer.from(sign(`${first}.${second}.${id}`)), Buffer.from(signature))) return undefined
  const session = { id, started: Number.parseInt(first, 36), seen: Number.parseInt(second, 36) }
  return session.seen <= now + SKEW && now < endOf(session) ? session : undefined
}

/** End of the session if it is not renewed. */
export function endOf({ started, seen }: Session): number {
  return Math.min(started + LONGEST, seen + IDLE)
}

/** End of the session even if it is renewed. */
export function lastMomentOf({ started }: Session): number {
  return started + LONGEST
}

/** The session for a new cookie. Undefined if the current one is recent enough. */
export function renewed(session: Session, now: number): Session | undefined {
  return now - session.seen > RENEWED ? { ...session, seen: now } : undefined
}
