import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { WeirError, type WeirErrorCode } from '@weir/core'
import type { Announcement, AtomicStep, Decide, DecidedPolicy, StoreConnection, StoreNode, SyncReply, Verdict } from '@weir/core/sync'
import { decode, encode, type NodeAnswer, type NodeCommand } from './fixtures/ipc-node.ts'

/** Reduces each step to its id, because functions can't be sent. */
function named(request: Decide): Decide {
  const policies = new Map<DecidedPolicy, DecidedPolicy>()
  const questions = request.questions.map((question) => {
    const { policy } = question
    const known = policies.get(policy) ?? { ...policy, step: { id: policy.step.id } as AtomicStep }
    policies.set(policy, known)
    return { ...question, policy: known }
  })
  return { ...request, questions }
}

/** A real child process. The test controls the processes of the contract in it. */
export class IpcChild {
  readonly process: ChildProcess
  readonly warnings: string[] = []
  readonly #calls = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  readonly #listeners = new Map<string, (announcement: Announcement) => void>()
  #call = 0

  constructor() {
    this.process = fork(new URL('./fixtures/ipc-node.ts', import.meta.url), {
      execArgv: ['--import', 'tsx', '--conditions=@weir/source'],
      stdio: ['ignore', 'inherit', 'ignore', 'ipc'],
    })
    this.process.on('message', (message: { readonly test?: string }) => {
      if (message.test !== undefined) this.#answered(decode(message.test) as NodeAnswer)
    })
    this.process.on('exit', () => {
      for (const { reject } of this.#calls.values()) reject(new Error('the child is gone'))
    })
  }

  run(command: NodeCommand): Promise<unknown> {
    const call = ++this.#call
    return new Promise((resolve, reject) => {
      this.#calls.set(call, { resolve, reject })
      this.process.send({ test: encode({ call, command }) })
    })
  }

  async connect(node: StoreNode): Promise<StoreConnection> {
    this.#listeners.set(node.id, (announcement) => node.announced(announcement))
    await this.run({ do: 'open', node: node.id })
    return {
      sync: (request) => this.run({ do: 'sync', node: node.id, request }) as Promise<SyncReply>,
      decider: async () => ({
        partOf: () => 0,
        decide: (request) => this.run({ do: 'decide', node: node.id, request: named(request) }) as Promise<readonly Verdict[]>,
      }),
      audit: async () => ({
        add: async (entry) => void (await this.run({ do: 'audit', node: node.id, entry, most: 0 })),
        list: (most) => this.run({ do: 'audit', node: node.id, most }) as Promise<readonly string[]>,
      }),
      close: async () => void (await this.run({ do: 'close', node: node.id }).catch(() => undefined)),
    }
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const exited = once(this.process, 'exit')
    this.process.kill('SIGKILL')
    await exited
  }

  #answered(answer: NodeAnswer): void {
    if (answer.is === 'announced') this.#listeners.get(answer.node)?.(answer.announcement as Announcement)
    else if (answer.is === 'warned') this.warnings.push(answer.code)
    else {
      const call = this.#calls.get(answer.call)
      this.#calls.delete(answer.call)
      if (answer.is === 'done') call?.resolve(answer.value)
      else call?.reject(answer.code === '' ? new Error(answer.message) : new WeirError(answer.code as WeirErrorCode, answer.message))
    }
  }
}
