import { statementsIfMissing } from '../schema/schema-sql.ts'
import type { CheckedOptions } from './options.ts'
import type { Session } from './session.ts'

/** Milliseconds between attempts to make what is missing of the schema. */
const CREATE_AGAIN = 1_000

/** No such schema, function, table or column: nothing is there yet, or somebody took it away. */
const MISSING = ['3F000', '42883', '42P01', '42703']
/** Two transactions were in each other's way, by the isolation that this database has for all. What was sent can be sent again. */
const AGAIN = ['40001', '40P01']
/** Nobody hears announcements any more, as one listener is stuck: they fill the queue, and nothing that announces can be committed. */
export const QUEUE_FULL = '54000'

/** Calls the functions of the schema, and makes them where they are missing, if the user wants it. */
export class Calls {
  readonly #session: Session
  readonly #options: CheckedOptions
  readonly #monotonic: () => number
  #createdAt = Number.NEGATIVE_INFINITY
  #creating: Promise<void> | undefined

  constructor(session: Session, options: CheckedOptions, monotonic: () => number) {
    this.#session = session
    this.#options = options
    this.#monotonic = monotonic
  }

  /** @returns the text of what the function returns, undefined if there is none */
  async call(name: 'exchange_1' | 'decide_1', values: unknown[], again = false): Promise<unknown> {
    const parameters = values.map((_, i) => `$${i + 1}`).join()
    try {
      const [row] = await this.#session.query(`SELECT ${this.#options.schema}.${name}(${parameters}) AS reply`, values)
      return (row as { readonly reply?: unknown } | undefined)?.reply
    } catch (error) {
      const code = codeOf(error)
      if (!again && (AGAIN.includes(code) || (MISSING.includes(code) && (await this.#create())))) return await this.call(name, values, true)
      throw error
    }
  }

  /**
   * Calls that were sent at the same time miss the same, and wait for the same.
   *
   * @throws (rejects) where the role may not
   */
  async #create(): Promise<boolean> {
    if (!this.#options.create) return false
    if (this.#creating === undefined) {
      const now = this.#monotonic()
      if (now - this.#createdAt < CREATE_AGAIN) return false
      this.#createdAt = now
      this.#creating = this.#session.script(statementsIfMissing(this.#options.schema, this.#options.unlogged)).finally(() => {
        this.#creating = undefined
      })
    }
    await this.#creating
    return true
  }
}

/** The five characters by which PostgreSQL names an error; none for others. */
export function codeOf(error: unknown): string {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}

/** Whether what is there, or what the role may, does not suffice. */
export function lacks(code: string): boolean {
  return MISSING.includes(code) || code === '42501'
}
