import { ask, askAll, NoAnswer, type Patience } from '../report/user-function.ts'
import { type Answering, whenEnded } from '../report/when-ended.ts'
import type { Delayed } from '../throttler/delays.ts'
import { addressKeys } from './request/address.ts'
import type { RequestReader } from './request/reader.ts'

/** A request that its policies may delay. */
export class DelayedRequest implements Delayed {
  readonly #request: unknown
  readonly #response: Answering | undefined
  readonly #clientOf: (request: unknown) => string | undefined
  readonly patience: Patience

  /** @param response the client waits for it: when it is closed, the client has disconnected */
  constructor(request: unknown, response: Answering | undefined, clientOf: (request: unknown) => string | undefined, patience: Patience) {
    this.#request = request
    this.#response = response
    this.#clientOf = clientOf
    this.patience = patience
  }

  get client(): string | undefined {
    return this.#clientOf(this.#request)
  }

  ask(delay: (over: number, request: unknown) => unknown, over: number): unknown {
    return askAll(delay, over, this.#request)
  }

  whenGone(then: () => void): () => void {
    return this.#response === undefined ? () => {} : whenEnded(this.#response, then)
  }
}

/** Identifies waiting clients by the address that they are counted by. */
export function clientReader<Req>(reader: RequestReader<Req>, subnet: number | undefined): (request: unknown) => string | undefined {
  const keyOf = addressKeys(subnet)
  return (request) => {
    const address = ask((given: Req) => reader.ip(given), request as Req)
    return address instanceof NoAnswer ? undefined : keyOf(address as string | undefined)
  }
}
