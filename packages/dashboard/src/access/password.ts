import { createHmac, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { WeirError } from '@weir/core'
import { kindOf } from '@weir/core/inspect'

const SHORTEST = 12
const LONGEST = 256
/** The same in every process, so that all that know the password accept each other's sessions. */
const SALT = 'weir dashboard sessions'

/** Lets those in who know a password. Made by `password`. */
export interface PasswordAccess {
  /** Marks what `password` returns. */
  readonly kind: 'password'
}

/** A password that can be compared with, and what is signed by it. Nothing of it shows when it is logged. */
export class Password implements PasswordAccess {
  readonly kind = 'password'
  readonly #digestKey = randomBytes(32)
  readonly #digest: Buffer
  readonly #signKey: Buffer

  constructor(secret: string) {
    this.#digest = this.#digestOf(secret)
    // Slow on purpose: whoever gets hold of a session's cookie must not find the password by trying them all on it.
    this.#signKey = scryptSync(secret.normalize('NFC'), SALT, 32)
  }

  /** Takes the same time wherever the two differ, and however long they are. */
  matches(given: string): boolean {
    return timingSafeEqual(this.#digestOf(given), this.#digest)
  }

  /** A signature that only those can make who know the password. 43 characters of base64url. */
  sign(text: string): string {
    return createHmac('sha256', this.#signKey).update(text).digest('base64url')
  }

  /** Keyboards write the same letter in several ways: composed, and not. */
  #digestOf(text: string): Buffer {
    return createHmac('sha256', this.#digestKey).update(text.normalize('NFC')).digest()
  }
}

/**
 * For `authorize`: a page where people sign in with this password, and a session cookie. All processes with the same password
 * accept each other's sessions; another password ends them all.
 *
 * @param secret - 12 to 256 characters on one line, e.g. `process.env.DASHBOARD_PASSWORD`
 * @throws WeirError `WEIR_MISSING_OPTION` without one, `WEIR_INVALID_OPTION` for one that can't be used; neither shows it
 *
 * @example
 * dashboard(throttler, { authorize: password(process.env.DASHBOARD_PASSWORD) })
 */
export function password(secret: string | undefined): PasswordAccess {
  if (secret === undefined || secret === '') {
    throw new WeirError(
      'WEIR_MISSING_OPTION',
      'The password of the dashboard is missing. Set the variable that it comes from, e.g. DASHBOARD_PASSWORD.',
    )
  }
  if (typeof secret !== 'string') throw invalid(`is ${kindOf(secret)}`, 'a string')
  const { length } = secret
  if (length < SHORTEST || length > LONGEST) throw invalid(`has ${length} characters`, `${SHORTEST} to ${LONGEST}`)
  // Nobody can type them. A file that the password was read from often ends with one.
  if (/\p{Cc}/u.test(secret)) throw invalid('has a line break or a control character, perhaps at its end', 'one line of text')
  return new Password(secret)
}

function invalid(what: string, allowed: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `The password of the dashboard ${what}. Use ${allowed}.`)
}
