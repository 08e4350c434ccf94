import { PassThrough, Writable } from 'node:stream'
import { run } from '@weir/cli'
import { input, report } from '../harness/child.ts'
import { timedAsync } from '../harness/measure.ts'

export interface PlanInput {
  readonly log: string
  readonly rules: string
}

export interface PlanResult {
  /** The time, in milliseconds. */
  readonly cpu: number
  readonly wall: number
  /** The most bytes of the whole process. */
  readonly memory: number
  readonly requests: number
  readonly rejected: number
}

const { log, rules } = input<PlanInput>()
let text = ''
const stdout = new Writable({
  write(piece, _encoding, done) {
    text += String(piece)
    done()
  },
})
let code = -1
const { cpu, wall } = await timedAsync(async () => {
  code = await run(
    ['plan', log, '--rules', rules, '--format', 'json'],
    { stdin: new PassThrough(), stdout, stderr: process.stderr, env: {} },
    '0',
  )
})
if (code !== 0) throw new Error(`weir plan ended with ${code}`)
const { plan } = JSON.parse(text) as { readonly plan: { readonly requests: number; readonly rejected: number } }
const result: PlanResult = { cpu, wall, memory: process.resourceUsage().maxRSS * 1024, requests: plan.requests, rejected: plan.rejected }
report(result)
