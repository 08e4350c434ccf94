import { statementsIfMissing } from '../schema/schema-sql.ts'
import type { CheckedOptions } from './options.ts'
import type { Session } from './session.ts'
import { codeOf } from './sql-state.ts'

/** Milliseconds between two attempts to create the missing parts of the schema. */
const CREATE_AGAIN = 1_000

/** No such schema, function, table or column: it was not created yet, or it was removed. */
const MISSING = ['3F000', '42883', '42P01', '42703']
/** Two transactions conflicted at the isolation level that is this database's default. The call can be sent again. */
const AGAIN = ['40001', '40P01']
/** The queue of notifications is full because one listener is stuck. Transactions with announcements can't commit. */
export const QUEUE_FULL = '54000'

/** Calls the functions of the schema and uses its tables. Creates them if they are missing and the options allow it. */
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

  /**
   * Calls a function, and again if a good connection was lost and replaced at once. The functions are idempotent.
   *
   * @returns the text that the function returns, undefined if there is none
   */
  async call(name: 'exchange_1' | 'decide_1', values: unknown[]): Promise<unknown> {
    const parameters = values.map((_, i) => `$${i + 1}`).join()
    const call = (): Promise<readonly unknown[]> => this.query(`SELECT ${this.#options.schema}.${name}(${parameters}) AS reply`, values)
    const [row] = await call().catch(async (error: unknown) => {
      if (!(await this.#session.replaced())) throw error
      return call()
    })
    return (row as { readonly reply?: unknown } | undefined)?.reply
  }

  /** Runs a statement that uses the schema. */
  async query(statement: string, values: unknown[], again = false): Promise<readonly unknown[]> {
    try {
      return await this.#session.query(statement, values)
    } catch (error) {
      const code = codeOf(error)
      if (!again && (AGAIN.includes(code) || (MISSING.includes(code) && (await this.#create()))))
        return await this.query(statement, values, true)
      throw error
    }
  }

  /**
   * Creates the schema. Calls that run at the same time wait for the same attempt.
   *
   * @throws (rejects) if the role has no permission
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

/** Returns whether a part of the schema or a permission of the role is missing. */
export function lacks(code: string): boolean {
  return MISSING.includes(code) || code === '42501'
}
