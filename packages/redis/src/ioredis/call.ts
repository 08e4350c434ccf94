import type { Script } from '../scripts/script.ts'
import type { Client } from './template.ts'

/** Sends a script by its name over a client; the keys come first among `args`. */
export type SendCall = (script: Script, keys: number, args: readonly string[]) => Promise<unknown>

/** What is used of a client of ioredis, which makes a command of each call and sends it. */
interface Sender extends Pick<Client, 'evalsha'> {
  sendCommand?(command: object, ...more: unknown[]): unknown
}

type CallClass = new (script: Script, keys: number, rest: readonly string[]) => object

/**
 * How scripts are called over a client of one server: by commands of our own, which cost a fraction of what ioredis makes of `evalsha`. The
 * first one is left to ioredis, to see what its commands are.
 */
export function callsOver(client: Sender): SendCall {
  let Call: CallClass | undefined
  return (script, keys, args) => {
    if (Call !== undefined) return client.sendCommand?.(new Call(script, keys, args)) as Promise<unknown>
    const own = Object.hasOwn(client, 'sendCommand')
    const { sendCommand } = client
    if (sendCommand === undefined) return client.evalsha(script.sha, keys, ...args)
    client.sendCommand = (command, ...more) => {
      Call = callClass(Object.getPrototypeOf(command))
      return sendCommand.call(client, command, ...more)
    }
    try {
      return client.evalsha(script.sha, keys, ...args)
    } finally {
      if (own) client.sendCommand = sendCommand
      else Reflect.deleteProperty(client, 'sendCommand')
    }
  }
}

/**
 * A script that is called by its name, as a command of ioredis: it is put down as it is sent, its lengths are counted once for all, and
 * one promise is made. What is sent, and what comes of it, is the same.
 *
 * @param command what ioredis may ask any command
 */
function callClass(command: object): CallClass {
  class Call {
    readonly name: string = 'evalsha'
    readonly inTransaction: boolean = false
    isTraced = false
    readonly promise: Promise<unknown>
    // Tracers call them by themselves, or put others in their place.
    resolve!: (reply: unknown) => unknown
    reject!: (error: Error) => void
    readonly #script: Script
    readonly #keys: number
    readonly #rest: readonly string[]

    constructor(script: Script, keys: number, rest: readonly string[]) {
      this.#script = script
      this.#keys = keys
      this.#rest = rest
      this.promise = new Promise((resolve, reject) => {
        this.resolve = (reply) => resolve(typeof reply === 'number' ? reply : textOf(reply))
        this.reject = reject
      })
    }

    /** For errors, and for tracers. */
    get args(): readonly string[] {
      return [this.#script.sha, String(this.#keys), ...this.#rest]
    }

    toWritable(): string {
      const keys = String(this.#keys)
      const head = `*${this.#rest.length + 3}\r\n$7\r\nevalsha\r\n$40\r\n${this.#script.sha}\r\n$${keys.length}\r\n${keys}\r\n`
      let text = head
      for (const arg of this.#rest) text += `$${arg.length}\r\n${arg}\r\n`
      if (Buffer.byteLength(text) === text.length) return text
      text = head
      for (const arg of this.#rest) text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`
      return text
    }
  }
  Object.setPrototypeOf(Call.prototype, command)
  return Call
}

/** A reply as `evalsha` gives it: ioredis reads texts as buffers. */
function textOf(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply.toString()
  return Array.isArray(reply) ? reply.map(textOf) : reply
}
