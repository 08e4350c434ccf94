import { createThrottler } from '@weir/core'
import { checkRules, parseRules } from '@weir/core/rules'
import * as yaml from 'yaml'
import { input, report } from '../harness/child.ts'
import { timed } from '../harness/measure.ts'

export interface RulesInput {
  readonly form: 'json' | 'yaml'
  readonly overrides: number
}

/** Milliseconds of CPU, in which the process does nothing else. */
export interface RulesResult {
  readonly bytes: number
  readonly parse: number
  readonly check: number
  readonly update: number
}

const { form, overrides } = input<RulesInput>()
const document = (version: number) => ({
  version,
  policies: [{ name: 'customer', key: 'ip', limit: 100, interval: '1m' }],
  overrides: Array.from({ length: overrides }, (_, i) => ({
    policy: 'customer',
    key: `customer-${i}`,
    limit: 1_000 + i + version,
    until: '2099-01-01T00:00:00Z',
  })),
})
const throttler = createThrottler({ policies: [{ name: 'customer', limit: 100, interval: '1m' }] })
let result: RulesResult | undefined
// The first runs warm the process up.
for (let version = 1; version <= 3; version++) {
  const text = form === 'json' ? JSON.stringify(document(version)) : yaml.stringify(document(version))
  let parsed: ReturnType<typeof parseRules> | undefined
  const parse = timed(() => {
    parsed = parseRules(text, { yaml })
  })
  let rules: ReturnType<typeof checkRules> | undefined
  const check = timed(() => {
    rules = checkRules(parsed as NonNullable<typeof parsed>, { store: false })
  })
  const update = timed(() => throttler.update(rules?.policies as never, rules?.overrides as never))
  result = { bytes: text.length, parse: parse.cpu, check: check.cpu, update: update.cpu }
}
report(result)
process.exit(0)
