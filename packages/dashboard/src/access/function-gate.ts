import { WeirError } from '@weir/core'
import { answer, json } from '../answer.ts'
import type { Access, AuthorizeFunction, NamedAccess } from '../options.ts'
import { visible } from '../visible.ts'
import { type Gate, type Grant, UNLIMITED, type Visit } from './gate.ts'

/** Milliseconds. A function without an answer by then has rejected. */
const SLOWEST = 1_000
const LONGEST_NAME = 100

/** `authorize: (request, access) => …`: the user's function. Only `true` and `{ allow: true, name }`, or a promise of them, allow access. */
export class FunctionGate implements Gate {
  readonly sessions = undefined
  readonly #authorize: AuthorizeFunction
  readonly #warn: (error: WeirError, subject: string) => void

  /** @param warn - called with a warning if the function fails */
  constructor(authorize: AuthorizeFunction, warn: (error: WeirError, subject: string) => void) {
    this.#authorize = authorize
    this.#warn = warn
  }

  async allow({ request }: Visit, access: Access): Promise<Grant | undefined> {
    let timer: NodeJS.Timeout | undefined
    try {
      const said: unknown = this.#authorize(request, access)
      if (typeof said === 'boolean') return said ? UNLIMITED : undefined
      // A result after the deadline is ignored, even if it is a rejection.
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(() => resolve(), SLOWEST)
      })
      const found: unknown = await Promise.race([said, late])
      if (found === true) return UNLIMITED
      if (isNamed(found)) return found.allow ? { ...UNLIMITED, name: visible(found.name.slice(0, LONGEST_NAME)) } : undefined
      if (found !== false) this.#failed('did not return true, false or { allow: true, name } within 1 s')
      return undefined
    } catch (cause) {
      this.#failed('threw or rejected', cause)
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }

  reject({ response }: Visit, wanted: 'page' | 'data'): void {
    if (wanted === 'page') answer(response, 403, 'Forbidden.\n')
    else json(response, 403, { error: 'Not allowed.' })
  }

  close(): void {}

  #failed(how: string, cause?: unknown): void {
    // The text omits the message of the error, because it may contain data from a client.
    this.#warn(
      new WeirError(
        'WEIR_WARN_OPTION_FUNCTION_FAILED',
        `The dashboard's "authorize" ${how}, so the request was rejected. Return exactly true or false within 1 s.`,
        { cause },
      ),
      `dashboard.authorize ${how}`,
    )
  }
}

/** Requires both properties, so that an object with another meaning, such as a user's account, allows nothing. */
function isNamed(found: unknown): found is NamedAccess {
  if (typeof found !== 'object' || found === null) return false
  const { allow, name } = found as Readonly<Record<string, unknown>>
  return typeof allow === 'boolean' && typeof name === 'string' && name !== ''
}
