import { type ChildProcess, fork } from 'node:child_process'
import { attack } from '../harness/attack.ts'
import type { Given } from '../harness/given.ts'
import { HOSTILE, mutated, pathsOf, replaced } from '../harness/mutate.ts'
import { Random } from '../harness/random.ts'
import { ruleOf } from '../harness/rule.ts'

/** The roles of processes. `parent` serves, `honest` and `hostile` have a store, and `outsider` has none. */
export type Role = 'parent' | 'honest' | 'hostile' | 'outsider'
export interface Args {
  readonly role: Role
  readonly name: string
}

/** Sends a parent any message from a compromised child. No message may end the parent or the siblings, or lift their limits. */
export const ipcHostileChild = attack<Args>({
  name: 'ipc-hostile-child',
  targets: ['core'],
  victim: ipcVictim,

  async run({ start, result }) {
    const victim = await start({ role: 'parent', name: 'ipc-hostile-child' }, { heap: 256 })
    const patience = 60_000
    const first = await victim.ask<Honest>('honest')
    result('a sibling before', first.allowed === 5, `${first.allowed} of limit 5`)
    await victim.ask('genuine')
    for (const order of ['each part replaced', 'lists that claim a length', 'numbers as keys', 'deep', 'huge'] as const) {
      const sent = await victim.ask<number>({ order }, patience).catch(() => 0)
      await new Promise((resolve) => setTimeout(resolve, 200))
      const after = victim.up ? await victim.ask<Honest>('honest', 10_000).catch(() => undefined) : undefined
      const held = victim.up && after !== undefined && after.allowed === 0 && after.fresh <= 5 && after.state === 'synced'
      result(
        `${order}, ${sent} messages`,
        held,
        victim.up ? `sibling: ${after === undefined ? 'gone' : `${after.state}, ${after.allowed} more`}` : victim.ended,
      )
      if (!victim.up) return
    }
    const heard = await victim.ask<number>('outsider')
    result('a child without a store hears nothing', heard === 0, `${heard} messages`)
  },
})

interface Honest {
  readonly allowed: number
  readonly fresh: number
  readonly state: string
}

/** A process in the role of its arguments. `fuzz-ipc.ts` also uses it. */
export async function ipcVictim(given: Given<Args>): Promise<{ answer: (question: never) => unknown }> {
  switch (given.args.role) {
    case 'parent':
      return parent(given)
    case 'honest':
      return honest()
    case 'hostile':
      return hostile()
    case 'outsider':
      return outsider()
  }
}

async function parent(given: Given<Args>): Promise<{ answer: (question: never) => unknown }> {
  const { serveIpc } = await import('@weir/core/ipc')
  serveIpc()
  const children = new Map<string, ChildProcess>()
  for (const role of ['honest', 'hostile', 'outsider'] as const) {
    const child = fork(process.argv[1] as string, [given.args.name, JSON.stringify({ ...given, args: { ...given.args, role } })])
    children.set(role, child)
    await answerOf(child, 0)
  }
  let asked = 0
  const ask = (role: string, question: unknown): Promise<unknown> => {
    const child = children.get(role) as ChildProcess
    child.send({ asked: ++asked, question }, () => {})
    return answerOf(child, asked)
  }
  const answer = (question: string | { order: string }): Promise<unknown> => {
    if (question === 'honest' || question === 'outsider') return ask(question, null)
    return ask('hostile', question)
  }
  return { answer: answer as never }
}

async function policiesOf(limit: number): Promise<never[]> {
  return Promise.all(['fixed', 'sliding'].map(async (kind) => ({ name: kind, limit, interval: '1h', ...(await ruleOf(kind)) }) as never))
}

function answerOf(child: ChildProcess, asked: number): Promise<unknown> {
  if (!child.connected) return Promise.reject(new Error('a child ended'))
  return new Promise((resolve, reject) => {
    const listen = (message: { asked?: number; value?: unknown; error?: string } | null): void => {
      if (message?.asked !== asked) return
      child.off('message', listen)
      if (message.error === undefined) resolve(message.value)
      else reject(new Error(message.error))
    }
    child.on('message', listen as never)
    child.once('exit', () => reject(new Error('a child ended')))
  })
}

async function honest(): Promise<{ answer: () => unknown }> {
  const { createThrottler } = await import('@weir/core')
  const { ipcStore } = await import('@weir/core/ipc')
  // The same policies as in the hostile child, because its messages are about them.
  const policies = await policiesOf(5)
  const throttler = createThrottler({ policies, store: ipcStore(), heartbeat: 100 }).start()
  let asked = 0
  const answer = async (): Promise<Honest> => {
    const count = (key: string): number => Array.from({ length: 20 }, () => throttler.check(key).allowed).filter(Boolean).length
    const allowed = count('mine')
    const fresh = count(`fresh${asked++}`)
    for (let i = 0; i < 100 && throttler.state !== 'synced'; i++) await new Promise((resolve) => setTimeout(resolve, 30))
    return { allowed, fresh, state: throttler.state }
  }
  return { answer }
}

async function outsider(): Promise<{ answer: () => unknown }> {
  let heard = 0
  process.on('message', (message: { asked?: number }) => {
    if (message.asked === undefined) heard++
  })
  return { answer: () => heard }
}

/** Records the messages of its own store, and sends changed copies of them. */
async function hostile(): Promise<{ answer: (question: never) => unknown }> {
  const { createThrottler } = await import('@weir/core')
  const { ipcStore } = await import('@weir/core/ipc')
  const samples: unknown[] = []
  const send = process.send?.bind(process) as (message: unknown, done: () => void) => boolean
  process.send = ((message: object, ...rest: unknown[]) => {
    if (!('asked' in message) && samples.length < 60) samples.push(structuredClone(message))
    return (send as (...all: unknown[]) => boolean)(message, ...rest)
  }) as never
  // Waits for the channel after every 20 messages, so that it is never far behind.
  let parcel = 0
  const said: string[] = []
  const say = (message: unknown): Promise<void> | undefined => {
    said.push(JSON.stringify(message)?.slice(0, 600) ?? '')
    if (said.length > 5) said.shift()
    try {
      if (++parcel % 20 !== 0) return void send(message ?? null, () => {})
      return new Promise((resolve) => send(message ?? null, () => resolve()))
    } catch {
      // The message can't be cloned, so it can't be sent.
      return undefined
    }
  }
  // The child ignores its own errors, as a real attacker's child would.
  process.on('uncaughtException', () => {})
  // The last messages are printed, so that a failure of the parent can be replayed.
  process.once('exit', () => console.error(`last said: ${said.join(' ')}`))
  const policies = await policiesOf(4)
  const throttler = createThrottler({ policies, store: ipcStore(), heartbeat: 100 }).start()
  const answer = async (question: 'genuine' | { order: string; seed?: number; time?: number }): Promise<unknown> => {
    if (question === 'genuine') {
      for (let i = 0; i < 10; i++) {
        for (let more = 0; more < 3; more++) throttler.check(`theirs${i % 3}`)
        throttler.block(`blocked${i}`, '1h')
        await new Promise((resolve) => setTimeout(resolve, 60))
      }
      return samples.length
    }
    let sent = 0
    if (question.order === 'fuzz') {
      const random = new Random(question.seed ?? 1)
      for (const deadline = Date.now() + (question.time ?? 1_000); Date.now() < deadline; sent++) {
        await say(mutated(random, random.pick(samples), HOSTILE))
      }
      return sent
    }
    for (const sample of shapes(samples)) {
      const paths = pathsOf(sample)
      // Large messages are sent only a few times, because they are slow.
      const step = question.order === 'huge' || question.order === 'deep' ? Math.ceil(paths.length / 8) : 1
      for (const path of paths.filter((_, i) => i % step === 0)) {
        for (const value of ORDERS[question.order] ?? []) {
          await say(replaced(sample, path, value))
          sent++
        }
      }
    }
    return sent
  }
  return { answer: answer as never }
}

/** One sample of each shape, at most four. Samples with the most parts come first. */
function shapes(samples: readonly unknown[]): unknown[] {
  const found = new Map(samples.map((sample) => [JSON.stringify(pathsOf(sample)), sample]))
  return [...found.entries()]
    .sort(([a], [b]) => b.length - a.length)
    .slice(0, 4)
    .map(([, sample]) => sample)
}

function deep(levels: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < levels; i++) value = [value]
  return value
}

const ORDERS: Readonly<Record<string, readonly unknown[]>> = {
  'each part replaced': HOSTILE.filter(
    (value) => !(typeof value === 'object' && value !== null && 'length' in value && !Array.isArray(value)),
  ),
  'numbers as keys': [7, -1, 1e308],
  'lists that claim a length': [{ length: 1e9 }, { length: 2 ** 32 }, { length: '5' }],
  deep: [deep(500)],
  huge: ['z'.repeat(3_000_000)],
}
