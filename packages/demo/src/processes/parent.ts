import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DemoError } from '../errors.ts'
import { safeText } from '../view/format.ts'
import { type FromChild, isOurs, type Order, type Ready } from './messages.ts'

/** Milliseconds. The first compilation on a busy machine may take long. A child that needs longer is broken. */
const START_DEADLINE = 30_000
const STOP_DEADLINE = 3_000
/** Characters of the longest error of a child that is shown. */
const LONGEST_COMPLAINT = 300

/** One child process, from its start to its end. */
export class Child {
  readonly name: string
  readonly process: ChildProcess
  readonly ready: Promise<Ready>
  #stopping = false
  readonly #exited: Promise<void>

  /**
   * @param script name of a program in this folder, without the extension, which is the same as this file's
   * @param onMessage receives its messages after it is ready
   * @param onLost called if it ends without an order
   */
  constructor(name: string, script: string, argument: unknown, onMessage: (message: FromChild) => void, onLost: (reason: string) => void) {
    this.name = name
    const file = fileURLToPath(new URL(`./${script}${extname(import.meta.url)}`, import.meta.url))
    this.process = fork(file, [JSON.stringify(argument)], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let complaint = ''
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => (complaint = (complaint + text).slice(-2000)))
    this.#exited = new Promise((resolve) => {
      this.process.once('exit', () => resolve())
      this.process.once('error', () => resolve())
    })
    this.ready = new Promise((resolve, reject) => {
      const fail = (reason: string): void => reject(new DemoError(`${name} could not start: ${reason}`))
      const timer = setTimeout(() => fail(`no answer within ${START_DEADLINE / 1000} s`), START_DEADLINE)
      this.process.once('error', (error) => fail(error.message))
      this.process.on('message', (message) => {
        if (!isOurs<FromChild>(message)) return
        if (message.type === 'demo:ready') {
          clearTimeout(timer)
          resolve(message)
        } else if (message.type === 'demo:failed') fail(message.reason)
        else onMessage(message)
      })
      this.process.once('exit', (code, signal) => {
        clearTimeout(timer)
        const reason = `it ended with ${signal ?? `code ${code}`}${complaint === '' ? '' : `: ${safeText(lastLine(complaint), LONGEST_COMPLAINT)}`}`
        fail(reason)
        if (!this.#stopping) onLost(`${name}: ${reason}`)
      })
    })
    // The caller that awaits `ready` gets the error. Without this handler it would be an unhandled rejection before.
    this.ready.catch(() => {})
  }

  order(type: Order['type']): void {
    if (this.process.connected) this.process.send({ type } satisfies Order, () => {})
  }

  /** Orders the child to end, and kills it after a deadline. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.order('demo:stop')
    const force = setTimeout(() => this.process.kill('SIGKILL'), STOP_DEADLINE)
    await this.#exited
    clearTimeout(force)
  }
}

function lastLine(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  return (lines.find((line) => /^\s*\w*Error\b/.test(line)) ?? lines.at(-1) ?? '').trim()
}
