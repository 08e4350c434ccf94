import type { AuditEntry } from '@weir/core/inspect'
import type { Command } from 'commander'
import { noProcess } from '../cluster/no-process.ts'
import { openStore } from '../cluster/open-store.ts'
import { StoreWatch } from '../cluster/store-watch.ts'
import type { Output } from '../terminal/output.ts'
import { moment, safeText } from '../terminal/text.ts'
import { UsageError } from '../terminal/usage-error.ts'
import { wholeNumber } from './options.ts'
import { type StoreOptions, withStore } from './store-options.ts'

/** Adds `weir audit`. */
export function addAudit(program: Command, out: Output): void {
  withStore(program.command('audit'))
    .summary('show who blocked, unblocked and reset keys, and why')
    .description(
      'Shows the newest blocks, unblocks and resets by this command, by the dashboard, and by your code with a reason. The store keeps 1,000, for 90 days.',
    )
    .option('--most <n>', 'rows, 1 to 1000', wholeNumber(1, 1_000), 20)
    .option('--json', 'print the entries as JSON')
    .action(async ({ store, namespace, most, json }: StoreOptions & { most: number; json?: true }) => {
      const watch = new StoreWatch(await openStore(store, namespace))
      try {
        const { live } = await watch.look()
        const entries = await actionsAt(watch, most)
        // The processes may be down, but their log stays.
        if (live === 0 && entries.length === 0) throw noProcess()
        if (json === true) out.json(entries)
        else show(entries, out)
      } finally {
        await watch.close()
      }
    })
}

async function actionsAt(watch: StoreWatch, most: number): Promise<readonly AuditEntry[]> {
  try {
    return (await watch.actions(most)) ?? []
  } catch (error) {
    throw new UsageError(`The audit log can't be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function show(entries: readonly AuditEntry[], out: Output): void {
  if (entries.length === 0) {
    out.line('The audit log is empty.')
    return
  }
  out.table(
    ['time (UTC)', 'by', 'action', 'policy', 'key', 'reason'],
    entries.map(({ time, by, action, policy, key, reason }) => [
      moment(time),
      safeText(by, 30),
      safeText(action, 12),
      policy === undefined ? 'all' : safeText(policy, 20),
      safeText(key, 40),
      safeText(reason, 60),
    ]),
  )
}
