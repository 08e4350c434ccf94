import { createHmac, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'
import { WeirError } from '@weir/core'
import { kindOf } from '@weir/core/inspect'

const SHORTEST = 12
const LONGEST = 256
/** The same in every process, so that processes with the same password accept each other's sessions. */
const SALT = 'weir dashboard sessions'

/** Gives access to people with a password. Created by `password`. */
export interface PasswordAccess {
  /** Marks what `password` returns. */
  readonly kind: 'password'
}

/** A password that can be compared and can sign texts. A log of it shows nothing secret. */
export class Password implements PasswordAccess {
  readonly kind = 'password'
  readonly #digestKey = randomBytes(32)
  readonly #digest: Buffer
  readonly #signKey: Buffer

  constructor(secret: string) {
    this.#digest = this.#digestOf(secret)
    // Slow on purpose, so that the password can't be found by trying many against a stolen cookie.
    this.#signKey = scryptSync(secret.normalize('NFC'), SALT, 32)
  }

  /** Compares in constant time, independent of the difference and of the lengths. */
  matches(given: string): boolean {
    return timingSafeEqual(this.#digestOf(given), this.#digest)
  }

  /** A signature that needs the password. 43 characters of base64url. */
  sign(text: string): string {
    return createHmac('sha256', this.#signKey).update(text).digest('base64url')
  }

  /** Normalises the text, because keyboards write the same letter either composed or decomposed. */
  #digestOf(text: string): Buffer {
    return createHmac('sha256', this.#digestKey).update(text.normalize('NFC')).digest()
  }
}

/**
 * For `authorize`: people sign in on a page with this password, and get a session cookie. All processes with the same password accept
 * each other's sessions. A new password ends all of them.
 *
 * @param secret - 12 to 256 characters on one line, e.g. `process.env.DASHBOARD_PASSWORD`
 * @throws WeirError `WEIR_MISSING_OPTION` without a password, `WEIR_INVALID_OPTION` for an invalid one. The messages don't show it
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
  // Control characters can't be typed. A file with the password often ends with a line break.
  if (/\p{Cc}/u.test(secret)) throw invalid('has a line break or a control character, perhaps at its end', 'one line of text')
  return new Password(secret)
}

function invalid(what: string, allowed: string): WeirError {
  return new WeirError('WEIR_INVALID_OPTION', `The password of the dashboard ${what}. Use ${allowed}.`)
}
