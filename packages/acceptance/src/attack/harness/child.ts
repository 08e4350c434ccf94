import { ATTACKS } from '../attacks/index.ts'
import type { Given } from './given.ts'

/** The attacked process. Its arguments name the attack, and it answers questions on its channel. */
const [, , name, given] = process.argv as [string, string, string, string]
const found = ATTACKS.find((attack) => attack.name === name)
if (found === undefined) throw new Error(`There is no attack ${name}.`)

const tell = (message: object): void => void process.send?.(message, () => {})
const failed = (asked: number) => (error: unknown) => tell({ asked, error: String((error as Error)?.stack ?? error) })

process.once('disconnect', () => process.exit())
// No top-level await, so that a rejection is reported to the attacker instead of ending the process.
found.victim(JSON.parse(given) as Given<never>).then(({ port, answer }) => {
  process.on('message', ({ asked, question }: { readonly asked?: number; readonly question: never }) => {
    if (asked === undefined) return
    Promise.resolve()
      .then(() => answer?.(question))
      .then((value) => tell({ asked, value: value ?? null }), failed(asked))
  })
  tell({ asked: 0, value: { port } })
}, failed(0))
