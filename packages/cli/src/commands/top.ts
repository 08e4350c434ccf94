import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { openStore } from '../cluster/open-store.ts'
import { type ClusterView, StoreWatch } from '../cluster/store-watch.ts'
import type { Output } from '../terminal/output.ts'
import { Screen } from '../terminal/screen.ts'
import { safeText } from '../terminal/text.ts'
import { wholeNumber } from './options.ts'
import { type StoreOptions, withStore } from './store-options.ts'
import { topText } from './top-text.ts'

/** Milliseconds between two looks. Processes report their status once a second. */
const EVERY = 1_000
/** Milliseconds to wait for reports. A process without a report by then may run an older version. */
const PATIENCE = 4_000

/** Adds `weir top`. */
export function addTop(program: Command, out: Output): void {
  withStore(program.command('top'))
    .summary('show the processes, and the most used and the blocked keys')
    .description(
      'Shows the processes, the keys nearest to their limits, and the blocked keys. In a terminal it refreshes each second until q or Ctrl+C. In a pipe it prints once.',
    )
    .option('--most <n>', 'rows per table, 1 to 1000', wholeNumber(1, 1_000), 10)
    .option('--once', 'print once, in a terminal too')
    .option('--json', 'print once, as JSON')
    .action(async ({ store, namespace, most, once, json }: StoreOptions & { most: number; once?: true; json?: true }) => {
      const watch = new StoreWatch(await openStore(store, namespace))
      try {
        const { stdout, stdin } = out.surroundings
        if (json !== true && once !== true && stdout.isTTY === true) {
          const screen = new Screen(stdout, stdin)
          await screen.live(EVERY, frames(watch, most, out))
          return
        }
        const view = await settledView(watch)
        if (json === true) out.json(view)
        else for (const line of topText(view, most, out)) out.line(line)
      } finally {
        await watch.close()
      }
    })
}

/** The current frame. If the store goes down later, the frame shows this beside the last data, because the store may come back. */
function frames(watch: StoreWatch, most: number, out: Output): () => Promise<readonly string[]> {
  let last: readonly string[] | undefined
  return async () => {
    try {
      last = topText(await watch.look(), most, out)
      return last
    } catch (error) {
      if (last === undefined) throw error
      return [out.colors.red(`The store doesn't answer: ${safeText(reasonOf(error), out.width - 28)}`), ...last]
    }
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A view with the reports of all live processes. They report only while a watcher is there, so the first look may miss some. */
export async function settledView(watch: StoreWatch): Promise<ClusterView> {
  const end = performance.now() + PATIENCE
  for (;;) {
    const view = await watch.look()
    if (view.nodes.length >= view.live || performance.now() >= end) return view
    await sleep(EVERY / 5)
  }
}
