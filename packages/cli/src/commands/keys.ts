import { hostname, userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { createThrottler, type Store, type Throttler, type Usage } from '@weir/core'
import { adapterOf } from '@weir/core/adapter'
import { recordAction } from '@weir/core/inspect'
import { type Command, InvalidArgumentError } from 'commander'
import { NoProcess, noProcess } from '../cluster/no-process.ts'
import { openStore } from '../cluster/open-store.ts'
import { StoreWatch } from '../cluster/store-watch.ts'
import { documentIn } from '../rules/document.ts'
import type { Output } from '../terminal/output.ts'
import { count, duration, safeText } from '../terminal/text.ts'
import { UsageError } from '../terminal/usage-error.ts'
import { durationOption } from './options.ts'
import { type StoreOptions, withStore } from './store-options.ts'

export interface KeyOptions extends StoreOptions {
  readonly rules: string
  readonly policy?: string
  readonly json?: true
  readonly reason?: string
}

/** Milliseconds until the store must have answered. */
export const PATIENCE = 5_000
/** A year. */
const LONGEST_BLOCK = 31_536_000_000
const LONGEST_REASON = 200

/** Adds `weir block`, `unblock`, `reset` and `usage`. */
export function addKeys(program: Command, out: Output): void {
  actionOn(program.command('block'))
    .summary('reject a key for a time')
    .description(
      'Rejects a key in all processes for a time, even if it has used nothing. It replaces an existing block. Policies that count all requests under one key are skipped, unless --policy names one.',
    )
    .requiredOption('--for <duration>', 'how long, with a unit, at most a year', positive)
    .action(async (key: string, options: KeyOptions & { readonly for: number }) => {
      await act('block', key, options, out, (throttler, choice) => throttler.block(key, options.for, choice))
      done(`${safeText(key)} is blocked for ${duration(options.for)}.`, { key, blockedForMs: options.for }, options, out)
    })
  actionOn(program.command('unblock'))
    .summary('lift the block of a key')
    .description('Lifts the block of a key in all processes, manual or not. Its counts stay.')
    .action(async (key: string, options: KeyOptions) => {
      await act('unblock', key, options, out, (throttler, choice) => throttler.unblock(key, choice))
      done(`${safeText(key)} is not blocked any more.`, { key, blockedForMs: 0 }, options, out)
    })
  actionOn(program.command('reset'))
    .summary('reset the counts of a key')
    .description('Resets the counts of a key in all processes. A manual block stays.')
    .action(async (key: string, options: KeyOptions) => {
      await act('reset', key, options, out, (throttler, choice) => throttler.reset(key, choice))
      done(`Counts of ${safeText(key)} reset.`, { key, reset: true }, options, out)
    })
  ofKey(program.command('usage'))
    .summary('show how much of its limits a key has used')
    .description('Shows how much of its limits a key has used in all processes, and whether it is blocked.')
    .action(async (key: string, options: KeyOptions) => {
      let usages: readonly Usage[] = []
      await change(options, out, async (throttler, choice) => {
        usages = await usageAt(throttler, key, choice)
      })
      if (options.json === true) out.json(usages)
      else showUsage(usages, out)
    })
}

export function ofKey(command: Command): Command {
  return withStore(command.argument('<key>', 'as it is counted, such as an address', someText))
    .requiredOption('--rules <file>', 'the rules of your processes, in YAML or JSON')
    .option('--policy <name>', 'only this policy, instead of all')
    .option('--json', 'print the result as JSON')
}

/** A command that changes a key, and is in the audit log. */
function actionOn(command: Command): Command {
  return ofKey(command).option('--reason <text>', 'the reason, for the audit log', shortText)
}

/** Rejects a text that the audit log would cut. */
function shortText(text: string): string {
  if (text.length > LONGEST_REASON) throw new InvalidArgumentError(`It has ${text.length} characters. Use at most ${LONGEST_REASON}.`)
  return text
}

/** Rejects an empty text, such as a variable of a script that is not set. */
function someText(text: string): string {
  if (text === '') throw new InvalidArgumentError('It is empty.')
  return text
}

function positive(text: string): number {
  // A number needs a unit, because a block of ten milliseconds would be useless.
  if (/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgumentError(`It has no unit. Use ${text}s for seconds, or ${text}m for minutes.`)
  const value = durationOption(LONGEST_BLOCK)(text)
  if (value < 1) throw new InvalidArgumentError('It must be at least 1ms.')
  return value
}

function done(text: string, result: object, { json }: KeyOptions, out: Output): void {
  if (json === true) out.json(result)
  else out.line(text)
}

type Choice = { readonly policy?: string }

/** The live processes before the command joins them, and the policies that one of them reports. */
type Found = { readonly live: number; readonly known: readonly string[] }

/**
 * Changes a key at the policies that processes use, and adds this to the audit log.
 *
 * @throws NoProcess if no process uses the store, or one of the policies. Nothing has changed then
 */
async function act(
  action: 'block' | 'unblock' | 'reset',
  key: string,
  options: KeyOptions,
  out: Output,
  run: (throttler: Throttler, choice: Choice) => void,
): Promise<void> {
  const { policy, reason } = options
  const reaches = ({ live, known }: Found): void => {
    if (live === 0) throw noProcess()
    if (known.length === 0) throw new NoProcess('No process uses these rules. Check --store, --namespace and --rules.')
  }
  const changeAll = async (throttler: Throttler): Promise<void> => {
    const all = policy === undefined ? throttler.policies.map(({ name }) => name) : [policy]
    const constant = action === 'block' && policy === undefined ? constantIn(throttler) : []
    if (constant.length > 0) out.note(`weir: Skipped ${shownNames(constant)}: all requests count under one key there.`)
    const chosen = all.filter((name) => !constant.includes(name))
    if (chosen.length === 0) throw new UsageError('No policy is left. Choose one with --policy.')
    const choices: readonly Choice[] = chosen.length === throttler.policies.length ? [{}] : chosen.map((name) => ({ policy: name }))
    for (const choice of choices) run(throttler, choice)
    for (const choice of choices) await recordAction(throttler as never, { action, key, by: whoami(), reason, ...choice })
  }
  await change(options, out, changeAll, reaches)
}

/** The policies that count all requests under one key. To block a client there would block nothing, or everyone. */
function constantIn(throttler: Throttler): readonly string[] {
  const { policies, rules } = adapterOf(throttler)
  return policies.filter((_, at) => rules[at]?.key === 'all').map(({ name }) => name)
}

/** The user and the host, for the audit log. */
function whoami(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // A container's user may have no name.
    return `${process.getuid?.() ?? 'unknown'}@${hostname()}`
  }
}

function shownNames(names: readonly string[]): string {
  return names.map((name) => safeText(name, 30)).join(', ')
}

/** @throws UsageError if the store does not answer */
export async function usageAt(throttler: Throttler, key: string, choice: Choice): Promise<readonly Usage[]> {
  const usages = await throttler.usage(key, { ...choice, timeout: PATIENCE })
  if (usages.some(({ source }) => source === 'node')) throw new UsageError('The store did not answer.')
  return usages
}

/**
 * Joins the cluster as a process for a moment, because only a process can change blocks and counts.
 *
 * @throws UsageError or WeirError if the store does not answer
 */
export async function change(
  { store: address, namespace, rules, policy }: KeyOptions,
  out: Output,
  run: (throttler: Throttler, choice: Choice) => unknown,
  /** Called before anything changes. It may throw. */
  reaches: (found: Found) => void = () => {},
): Promise<void> {
  const { policies } = (await documentIn(rules)).rules
  if (policy !== undefined) checkPolicy(policy, policies)
  const store = await openStore(address, namespace)
  const { watch, live } = await lookAt(store)
  const throttler = createThrottler({ policies, store, closeTimeout: PATIENCE }) as Throttler
  const chosen = throttler.policies.filter(({ name }) => (policy ?? name) === name)
  const known = chosen.filter(({ id }) => watch.knows(id))
  const unknown = chosen.filter((one) => !known.includes(one)).map(({ name }) => name)
  let failure: string | undefined
  throttler.on('syncFailed', ({ error }) => {
    failure = error instanceof Error ? error.message : String(error)
  })
  throttler.on('storeDown', () => {})
  throttler.on('warning', ({ error }) => out.note(`weir: ${safeText(error.message, 1_000)}`))
  try {
    reaches({ live, known: known.map(({ name }) => name) })
    if (unknown.length > 0)
      out.note(`weir: No process at this store uses the rule of ${shownNames(unknown)} now. Check --store, --namespace and --rules.`)
    throttler.start()
    const end = performance.now() + PATIENCE
    while (throttler.state !== 'synced') {
      if (performance.now() >= end) throw new UsageError(`The store did not answer${failure === undefined ? '' : `: ${failure}`}`)
      await sleep(10)
    }
    failure = undefined
    await run(throttler, policy === undefined ? {} : { policy })
  } finally {
    await throttler.close()
  }
  if (failure !== undefined) throw new UsageError(`The change may not have reached the store: ${failure}`)
}

/** Checks that the store answers. A throttler would retry instead, because a service should survive an outage. */
async function lookAt(store: Store): Promise<{ readonly watch: StoreWatch; readonly live: number }> {
  const watch = new StoreWatch(store)
  try {
    const { live } = await watch.look()
    return { watch, live }
  } finally {
    await watch.close()
  }
}

/**
 * Checks the name before any request to the store, so that a typo fails immediately. A policy with plans is one policy per plan.
 *
 * @throws UsageError
 */
function checkPolicy(policy: string, policies: readonly { readonly name?: string | undefined; readonly plans?: object }[]): void {
  const names = policies.flatMap(({ name = 'default', plans }) =>
    plans === undefined ? [name] : Object.keys(plans).map((plan) => `${name}:${plan}`),
  )
  if (names.includes(policy)) return
  throw new UsageError(
    `There is no policy ${JSON.stringify(policy)} in the rules. Use ${names.map((name) => JSON.stringify(name)).join(' or ')}.`,
  )
}

function showUsage(usages: readonly Usage[], out: Output): void {
  out.table(
    ['policy', 'key', '#used', '#of', '#left', '#back in', 'blocked'],
    usages.map(({ policy, key, used, limit, remaining, resetAfterMs, blockedForMs: blockedFor, manual }) => [
      safeText(policy, 30),
      safeText(key),
      count(used),
      count(limit),
      count(remaining),
      duration(resetAfterMs),
      blockedFor === 0 ? '' : `${duration(blockedFor)}${manual ? ', manually' : ''}`,
    ]),
  )
}
