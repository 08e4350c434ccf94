import { createHash } from 'node:crypto'
import { systemClock, WeirError } from '@weir/core'
import type { RulesSource } from '@weir/core/rules'
import { closedPart, invalidOption } from '@weir/core/sync'
import type { Link, Target } from '../connection/link.ts'
import { checkOptions, type RedisStoreOptions } from '../connection/options.ts'
import { asWeirError } from '../connection/unavailable.ts'
import { READ_RULES, REPLACE_RULES, RULES_HISTORY } from '../scripts/rules.ts'
import { type Script, script } from '../scripts/script.ts'

/** Options of `redisRules`, after the connection. */
export interface RedisRulesOptions extends Pick<RedisStoreOptions, 'namespace' | 'timeout'> {
  /**
   * Names the document, so that one Redis can store several. 1 to 100 letters, digits or any of `_ . -`.
   *
   * @default 'default'
   */
  readonly name?: string
}

/** Rules in a key of Redis. It connects when it is first used, and does not keep the process alive. */
export interface RedisRules extends RulesSource {
  read(): Promise<string | undefined>
  watch(changed: () => void): () => void
  replace(before: string | undefined, text: string): Promise<boolean>
  history(most: number): Promise<readonly string[]>
  /** Closes the connections. Any later use throws. */
  close(): void
}

/** Milliseconds between two reads of the document, because a message may be lost. */
const INTERVAL = 5_000
const READ = script(READ_RULES)
const REPLACE = script(REPLACE_RULES)
const HISTORY = script(RULES_HISTORY)

/** Makes rules on a server or Cluster, with any client library. */
export function rulesAt(target: Target, { name = 'default', ...options }: RedisRulesOptions): RedisRules {
  const { namespace, timeout } = checkOptions(options, 'redisRules', ['namespace', 'timeout'])
  if (typeof name !== 'string' || !/^[\w.-]{1,100}$/.test(name))
    throw invalidOption('name', name, '1 to 100 letters, digits or any of _ . -')
  return new RulesKey(target, `${namespace}:{rules}:${name}`, timeout)
}

class RulesKey implements RedisRules {
  readonly name: string
  readonly interval: number = INTERVAL
  readonly #key: string
  readonly #open: () => Link
  readonly #timeout: number
  readonly #address: string
  readonly #listeners = new Set<() => void>()
  #link: Link | undefined
  #closed = false

  constructor(target: Target, key: string, timeout: number) {
    this.name = `Redis at ${target.address}, ${key}`
    this.#key = key
    this.#timeout = timeout
    this.#address = target.address
    this.#open = () =>
      target.open({
        clock: systemClock,
        timeout,
        channel: key,
        received: () => {
          for (const changed of this.#listeners) changed()
        },
      })
  }

  async read(): Promise<string | undefined> {
    return textOf(await this.#run(READ, [this.#key], ''))
  }

  watch(changed: () => void): () => void {
    this.#listeners.add(changed)
    return () => {
      this.#listeners.delete(changed)
    }
  }

  async replace(before: string | undefined, text: string): Promise<boolean> {
    const expected = before === undefined ? undefined : createHash('sha1').update(before).digest('hex')
    const request = JSON.stringify({ before: expected, text, channel: this.#key })
    return (await this.#run(REPLACE, [this.#key, this.#history], request)) === 1
  }

  async history(most: number): Promise<readonly string[]> {
    const texts = await this.#run(HISTORY, [this.#history], String(Math.max(0, Math.floor(most))))
    return Array.isArray(texts) ? texts.filter((text) => typeof text === 'string') : []
  }

  close(): void {
    this.#closed = true
    this.#listeners.clear()
    this.#link?.close()
  }

  get #history(): string {
    return `${this.#key}:history`
  }

  async #run(what: Script, keys: readonly string[], argument: string): Promise<unknown> {
    if (this.#closed) throw closedPart('The source of rules')
    const link = (this.#link ??= this.#open())
    link.hold()
    let timer: unknown
    const late = new Promise<never>((_, reject) => {
      timer = systemClock.setTimeout(() => {
        link.silent(true)
        reject(
          new WeirError(
            'WEIR_STORE_TIMEOUT',
            `Redis did not answer within ${this.#timeout} ms. Check its load and the network, or raise "timeout".`,
          ),
        )
      }, this.#timeout)
    })
    try {
      return await Promise.race([this.#answer(link, what, keys, argument), late])
    } catch (error) {
      throw asWeirError(error, this.#address)
    } finally {
      systemClock.clearTimeout(timer)
      link.release()
    }
  }

  async #answer(link: Link, what: Script, keys: readonly string[], argument: string): Promise<unknown> {
    if (!(await link.connected())) throw link.lastError ?? new Error('not connected')
    return link.run(what, keys, argument)
  }
}

function textOf(reply: unknown): string | undefined {
  if (reply === null || typeof reply === 'string') return reply ?? undefined
  throw new WeirError('WEIR_STORE_REPLY', 'The rules in Redis are not a text. Write them with `weir push`, or with replace().')
}
