import { randomBytes, timingSafeEqual } from 'node:crypto'

/** Somebody who has signed in. The cookie says it all, so that no process needs to remember anything. */
export interface Session {
  readonly id: string
  /** When it began, and when its cookie was made; milliseconds since the Unix epoch. */
  readonly started: number
  readonly seen: number
}

/** So long after the dashboard was last open a session is over, and so long after it began; milliseconds. */
const IDLE = 3_600_000
const LONGEST = 12 * 3_600_000
/** Clocks of other processes may be ahead by this much. */
const SKEW = 60_000
/** A cookie is made anew once it is older than this. */
const RENEWED = 60_000

type Sign = (text: string) => string

const TOKEN = /^([0-9a-z]{1,10})\.([0-9a-z]{1,10})\.([\w-]{22})\.([\w-]{43})$/

export function newSession(now: number): Session {
  return { id: randomBytes(16).toString('base64url'), started: now, seen: now }
}

/** As the cookie has it: both times, the id, and a signature of these. */
export function tokenOf({ id, started, seen }: Session, sign: Sign): string {
  const text = `${started.toString(36)}.${seen.toString(36)}.${id}`
  return `${text}.${sign(text)}`
}

/** The session that a token stands for; undefined if it is not ours, or over. */
export function sessionOf(token: string, sign: Sign, now: number): Session | undefined {
  const parts = TOKEN.exec(token)
  if (parts === null) return undefined
  const [, first = '', second = '', id = '', signature = ''] = parts
  if (!timingSafeEqual(Buffer.from(sign(`${first}.${second}.${id}`)), Buffer.from(signature))) return undefined
  const session = { id, started: Number.parseInt(first, 36), seen: Number.parseInt(second, 36) }
  return session.seen <= now + SKEW && now < endOf(session) ? session : undefined
}

/** When it is over, unless it is renewed before. */
export function endOf({ started, seen }: Session): number {
  return Math.min(started + LONGEST, seen + IDLE)
}

/** When it is over in any case. */
export function lastMomentOf({ started }: Session): number {
  return started + LONGEST
}

/** The session with a new cookie's time, or undefined while the old one will do. */
export function renewed(session: Session, now: number): Session | undefined {
  return now - session.seen > RENEWED ? { ...session, seen: now } : undefined
}
