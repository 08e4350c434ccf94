import { show, type WeirError } from '../report/errors.ts'
import { ask, isThenable, NoAnswer, type Patience, settle } from '../report/user-function.ts'
import type { AdapterOptions } from './adapter-options.ts'
import type { Report } from './reports.ts'
import { addressKeys, UNKNOWN_ADDRESS } from './request/address.ts'
import type { AccessList } from './request/address-list.ts'
import { ProxyWatch } from './request/proxy-watch.ts'
import type { RequestReader } from './request/reader.ts'

/** An option that is checked before the throttler decides. */
interface Gate<Req> {
  readonly option: string
  readonly question: (request: Req) => unknown
  /** The result that settles the request. With any other result, the next gate is checked. */
  readonly settles: boolean
  /** The effect on the request: it passes uncounted, or it is denied. */
  readonly passes: boolean
}

/** The options that skip or deny requests: `enabled`, `skipPreflight`, `skip`, `allow`, `deny`. */
export class Gates<Req> {
  readonly #gates: readonly Gate<Req>[]
  readonly #patience: Patience
  readonly #report: Report

  constructor(
    {
      enabled,
      skip,
      skipPreflight,
      allow,
      deny,
    }: Pick<AdapterOptions<Req, never>, 'enabled' | 'skip' | 'skipPreflight' | 'allow' | 'deny'>,
    reader: RequestReader<Req>,
    patience: Patience,
    report: Report,
    warn: (error: WeirError, subject: string) => void,
  ) {
    this.#patience = patience
    this.#report = report
    // With a proxy's address, a list of private networks would skip every client.
    const watch = new ProxyWatch(reader, warn)
    const keyOf = addressKeys()
    const on = (list: AccessList<Req>) => {
      if (typeof list === 'function') return list
      return (request: Req) => {
        const address = reader.ip(request)
        if (watch.watching) watch.look(request, address, keyOf(address) !== UNKNOWN_ADDRESS)
        return list.includes(address)
      }
    }
    const isPreflight = (request: Req) =>
      reader.method(request) === 'OPTIONS' &&
      reader.header(request, 'origin') !== undefined &&
      reader.header(request, 'access-control-request-method') !== undefined
    const gates: (Gate<Req> | false)[] = [
      enabled !== undefined && {
        option: 'enabled',
        question: typeof enabled === 'function' ? () => enabled() : () => enabled,
        settles: false,
        passes: true,
      },
      skipPreflight === true && { option: 'skipPreflight', question: isPreflight, settles: true, passes: true },
      skip !== undefined && { option: 'skip', question: skip, settles: true, passes: true },
      allow !== undefined && { option: 'allow', question: on(allow), settles: true, passes: true },
      deny !== undefined && { option: 'deny', question: on(deny), settles: true, passes: false },
    ]
    this.#gates = gates.filter((gate) => gate !== false)
  }

  /** Whether none of the options is set. */
  get none(): boolean {
    return this.#gates.length === 0
  }

  /**
   * Checks the gates, beginning with `from`. Returns true to skip the request, false to deny it, and undefined to let the throttler decide.
   * Returns a promise only if a gate does.
   */
  ask(request: Req, from = 0): boolean | undefined | Promise<boolean | undefined> {
    for (let at = from; at < this.#gates.length; at++) {
      const gate = this.#gates[at] as Gate<Req>
      const answer = ask(gate.question, request)
      if (isThenable(answer)) return this.#askLater(request, at, answer)
      if (this.#opens(gate, answer)) return gate.passes
    }
    return undefined
  }

  async #askLater(request: Req, at: number, answer: object): Promise<boolean | undefined> {
    const gate = this.#gates[at] as Gate<Req>
    const { value } = await settle(answer, this.#patience)
    return this.#opens(gate, value) ? gate.passes : this.ask(request, at + 1)
  }

  /** Whether a result settles a request. */
  #opens({ option, settles }: Gate<Req>, answer: unknown): boolean {
    if (typeof answer === 'boolean') return answer === settles
    if (answer instanceof NoAnswer) this.#report(option, `Option "${option}"`, answer)
    // Values that JavaScript treats as false mean "no" here too.
    else if (answer) this.#report(option, `Option "${option}" must return true or false, but returned`, show(answer))
    return false
  }
}
