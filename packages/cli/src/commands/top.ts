import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { noProcess } from '../cluster/no-process.ts'
import { openStore } from '../cluster/open-store.ts'
import { type ClusterView, type Mode, ofMode, StoreWatch } from '../cluster/store-watch.ts'
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

const MODES: readonly Mode[] = ['enforced', 'dry-run', 'candidate']

interface TopOptions extends StoreOptions {
  readonly most: number
  readonly mode: Mode
  readonly once?: true
  readonly json?: true
}

/** Adds `weir top`. */
export function addTop(program: Command, out: Output): void {
  withStore(program.command('top'))
    .summary('show which keys are limited, the processes, and the most used keys')
    .description(
      'Shows the keys whose requests are rejected, the processes, the keys nearest to their limits, open reservations, and the blocked keys. In a terminal it refreshes each second until q or Ctrl+C. In a pipe it prints once.',
    )
    .option('--most <n>', 'rows per table, 1 to 1000', wholeNumber(1, 1_000), 10)
    .addOption(new Option('--mode <mode>', 'the policies whose keys are shown').choices(MODES).default('enforced'))
    .option('--once', 'print once, in a terminal too')
    .option('--json', 'print once, as JSON')
    .action(async ({ store, namespace, most, mode, once, json }: TopOptions) => {
      const watch = new StoreWatch(await openStore(store, namespace))
      try {
        const { stdout, stdin } = out.surroundings
        if (json !== true && once !== true && stdout.isTTY === true) {
          const screen = new Screen(stdout, stdin)
          await screen.live(EVERY, frames(watch, { most, mode }, out))
          return
        }
        const view = ofMode(await settledView(watch), mode)
        if (view.live === 0) throw noProcess()
        if (json === true) out.json(view)
        else for (const line of topText(view, most, out)) out.line(line)
      } finally {
        await watch.close()
      }
    })
}

/** The current frame. If the store goes down later, the frame shows this beside the last data, because the store may come back. */
function frames(watch: StoreWatch, { most, mode }: Pick<TopOptions, 'most' | 'mode'>, out: Output): () => Promise<readonly string[]> {
  let last: readonly string[] | undefined
  return async () => {
    try {
      const view = ofMode(await watch.look(), mode)
      // All processes may restart later, but none at the beginning is a wrong address.
      if (last === undefined && view.live === 0) throw noProcess()
      last = topText(view, most, out)
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
