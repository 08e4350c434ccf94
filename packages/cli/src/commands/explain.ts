import type { Explanation, Throttler, Usage } from '@weir/core'
import type { Command } from 'commander'
import { openStore } from '../cluster/open-store.ts'
import { type ClusterView, StoreWatch } from '../cluster/store-watch.ts'
import type { Output } from '../terminal/output.ts'
import { count, duration, safeText } from '../terminal/text.ts'
import { change, type KeyOptions, ofKey, usageAt } from './keys.ts'
import { settledView } from './top.ts'

/** Why a policy would allow or reject a request of one unit now, by the counts of all processes. */
type Row = Omit<Explanation, 'own' | 'others' | 'othersAgeMs' | 'retryAfterMs' | 'source'> & { readonly used: number }

/** A process that lists the key among its most used ones. */
interface Process {
  readonly process: string
  readonly state: string
  readonly policy: string
  readonly own: number
  readonly others: number
  /** Milliseconds since its last report. */
  readonly ageMs: number
}

/** Adds `weir explain`. */
export function addExplain(program: Command, out: Output): void {
  ofKey(program.command('explain'))
    .summary('show why a key is allowed or rejected')
    .description(
      'Shows per policy the units of a key in all processes, its block, and whether the next request of one unit would be allowed. A second table lists the processes that count the key most.',
    )
    .action(async (key: string, options: KeyOptions) => {
      let rows: readonly Row[] = []
      const view = await look(options)
      await change(options, out, async (throttler, choice) => {
        const usages = await usageAt(throttler, key, choice)
        rows = usages.map((usage) => rowOf(usage, throttler))
      })
      const processes = processesOf(rows, view)
      if (options.json === true) out.json({ policies: rows, processes })
      else show(rows, processes, out)
    })
}

/** The processes, before this one joins them. */
async function look({ store, namespace }: KeyOptions): Promise<ClusterView> {
  const watch = new StoreWatch(await openStore(store, namespace))
  try {
    return await settledView(watch)
  } finally {
    await watch.close()
  }
}

function rowOf({ policy: name, key, limit, used, blockedForMs, manual }: Usage, { policies }: Throttler): Row {
  const { algorithm, coordination } = policies.find((policy) => policy.name === name) as Throttler['policies'][number]
  const blocked = blockedForMs > 0
  const remaining = blocked ? 0 : Math.max(0, (algorithm.most?.(limit) ?? limit) - used)
  const rejects = blocked || remaining < 1
  return {
    policy: name,
    key,
    algorithm: algorithm.id,
    coordination,
    limit,
    used,
    remaining,
    blocked,
    blockedForMs: Math.ceil(blockedForMs),
    ...(blocked && { blockedBy: manual ? 'manual' : 'cooldown' }),
    next: rejects ? 'reject' : 'allow',
    reason: !rejects ? 'ok' : !blocked ? 'limit' : manual ? 'blocked' : 'cooldown',
  }
}

function processesOf(rows: readonly Row[], { nodes }: ClusterView): Process[] {
  return rows.flatMap(({ policy, key }) =>
    nodes.flatMap(({ label, state, top, age }) =>
      top
        .filter((one) => one.policy === policy && one.key === key)
        .map(({ own, used }) => ({ process: label, state, policy, own, others: Math.max(0, used - own), ageMs: Math.round(age) })),
    ),
  )
}

function show(rows: readonly Row[], processes: readonly Process[], out: Output): void {
  out.table(
    ['policy', 'key', 'algorithm', 'coordination', '#used', '#of', '#left', 'blocked', 'next request'],
    rows.map(({ policy, key, algorithm, coordination, used, limit, remaining, blocked, blockedForMs, blockedBy, next, reason }) => [
      safeText(policy, 30),
      safeText(key),
      algorithm,
      coordination,
      count(used),
      count(limit),
      count(remaining),
      blocked ? `${duration(blockedForMs)}, ${blockedBy === 'manual' ? 'manually' : 'cooldown'}` : '',
      next === 'allow' ? 'allowed' : `rejected: ${reason}`,
    ]),
  )
  if (processes.length === 0) out.line('No process reports the key among its most used ones.')
  else
    out.table(
      ['process', 'state', 'policy', '#own', '#others', '#reported'],
      processes.map(({ process, state, policy, own, others, ageMs }) => [
        safeText(process, 40),
        safeText(state, 20),
        safeText(policy, 30),
        count(own),
        count(others),
        `${duration(ageMs)} ago`,
      ]),
    )
}
