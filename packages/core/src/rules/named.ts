import type { Algorithm, SlotAlgorithm } from '../algorithms/algorithm.ts'
import type { SlowDown } from '../decide/policy.ts'
import type { AddressKey, KeySource } from '../decide/request-options.ts'
import { isAddressKey } from '../decide/request-rule.ts'
import { nearest } from '../report/did-you-mean.ts'
import { invalidOption, show, WeirError } from '../report/errors.ts'
import { alternatives } from '../report/show.ts'
import type { Awaitable } from '../report/user-function.ts'

/** Functions in your code that rules refer to by name. Names begin with a letter and have at most 64 letters, digits, `_` and `-`. */
export interface NamedFunctions<Req = unknown> {
  /**
   * Lists the algorithms that documents may name, such as `{ tokenBucket, slidingWindow }`. Each is called with the options in the
   * document.
   *
   * @default only `fixedWindow`
   * @see `@weir/core/docs/guides/rules.md`
   */
  readonly algorithms?: Readonly<Record<string, (options?: never) => Algorithm | SlotAlgorithm>>
  /**
   * Lists the functions of a request, or `address()` of one, that documents may name as a `key`.
   *
   * @default none
   */
  readonly keys?: Readonly<Record<string, AddressKey<Req> | Extract<KeySource<Req>, (...args: never) => unknown>>>
  /**
   * Lists the functions of a request that documents may name as a `match`.
   *
   * @default none
   */
  readonly matches?: Readonly<Record<string, (request: Req) => Awaitable<boolean>>>
  /**
   * Lists the functions of a request that documents may name as a `cost`.
   *
   * @default none
   */
  readonly costs?: Readonly<Record<string, (request: Req) => Awaitable<number>>>
  /**
   * Lists the functions of a request that documents may name as a `limit`.
   *
   * @default none
   */
  readonly limits?: Readonly<Record<string, (request: Req) => Awaitable<number>>>
  /**
   * Lists the functions of a request that documents may name as a `plan`.
   *
   * @default none
   * @example
   * follow(throttler, fileRules('rules.json'), { plans: { contract: (req) => req.user.plan } })
   */
  readonly plans?: Readonly<Record<string, (request: Req) => Awaitable<string>>>
  /**
   * Lists the functions that documents may name as a `delay`.
   *
   * @default none
   */
  readonly delays?: Readonly<Record<string, SlowDown<Req>>>
}

/** The kinds of named functions. */
export type NamedKind = keyof NamedFunctions

export const NAMED_KINDS: readonly NamedKind[] = ['algorithms', 'keys', 'matches', 'costs', 'limits', 'plans', 'delays']

/** The form of a name: it can be neither a path pattern nor a duration. */
const NAME = /^[A-Za-z][\w-]{0,63}$/
/** Values of `key` that need no function. */
export const BUILT_IN_KEYS: readonly string[] = ['route', 'ip', 'all']
/** Names that documents may use without an option. */
const BUILT_IN: Readonly<Partial<Record<NamedKind, readonly string[]>>> = { algorithms: ['fixedWindow'], keys: BUILT_IN_KEYS }

/** @throws WeirError `WEIR_INVALID_OPTION` for a value that is no function, or a name that documents can't use */
export function checkNamed(named: NamedFunctions<never>): void {
  for (const kind of NAMED_KINDS) {
    const given: unknown = named[kind]
    if (given === undefined) continue
    if (typeof given !== 'object' || given === null) throw invalidOption(kind, given, 'an object of functions by their names')
    for (const [name, value] of Object.entries(given)) {
      const reserved = kind === 'keys' && BUILT_IN_KEYS.includes(name)
      if (!NAME.test(name) || reserved) {
        const what = 'a name of letters, digits, "_" and "-" that begins with a letter, at most 64'
        throw invalidOption(`${kind}.${name}`, name, reserved ? 'another name, because this one is built in' : what)
      }
      const fits = typeof value === 'function' || (kind === 'keys' && isAddressKey(value))
      if (!fits) throw invalidOption(`${kind}.${name}`, value, 'a function')
    }
  }
}

/** Finds the functions that a document names. */
export class Named {
  readonly #named: NamedFunctions<never>
  readonly #standIn: ((kind: NamedKind, name: string) => unknown) | undefined

  /** @param standIn makes missing functions, for programs that check documents without the application */
  constructor(named: NamedFunctions<never>, standIn?: (kind: NamedKind, name: string) => unknown) {
    this.#named = named
    this.#standIn = standIn
  }

  /**
   * @param option the option with the name, for the message
   * @throws WeirError `WEIR_INVALID_OPTION`
   */
  find(kind: NamedKind, name: string, option: string): (...args: never[]) => unknown {
    const known = this.#named[kind] ?? {}
    if (Object.hasOwn(known, name)) return known[name] as (...args: never[]) => unknown
    const made = NAME.test(name) ? this.#standIn?.(kind, name) : undefined
    if (typeof made === 'function') return made as (...args: never[]) => unknown
    const names = [...new Set([...(BUILT_IN[kind] ?? []), ...Object.keys(known)])]
    const near = nearest(name, names)
    const meant = near === undefined ? '' : ` Did you mean ${show(near)}?`
    const use =
      names.length === 0 ? `Pass it to follow(), in "${kind}"` : `Use ${alternatives(names)}, or pass it to follow(), in "${kind}"`
    throw new WeirError('WEIR_INVALID_OPTION', `Option "${option}" is ${show(name)}, which is not in "${kind}".${meant} ${use}.`)
  }
}
