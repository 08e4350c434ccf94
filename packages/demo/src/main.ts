import { runCompare } from './compare.ts'
import { DemoError, UsageError } from './errors.ts'
import { runLive } from './live.ts'
import { type DemoOptions, HelpAsked, parseOptions } from './options.ts'
import { runReplay } from './replay.ts'
import { compareWords } from './report/compare-words.ts'
import { liveWords, replayWords } from './report/words.ts'
import { Screen } from './view/screen.ts'

/** Exit codes for signals: 128 plus the signal's number, like in shells. */
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (error instanceof HelpAsked) process.stdout.write(error.message)
  else if (error instanceof UsageError || error instanceof DemoError) {
    process.stderr.write(`weir demo: ${error.message}${error instanceof UsageError ? ' (see --help)' : ''}\n`)
    process.exitCode = error instanceof UsageError ? 2 : 1
  } else throw error
}

async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv)
  const stop = new AbortController()
  let exitCode = 0
  for (const [signal, code] of Object.entries(SIGNALS)) {
    process.on(signal, () => {
      exitCode = code
      stop.abort()
    })
  }
  // The output's reader may close it. The demo then ends in order, without a message.
  process.stdout.on('error', () => stop.abort())
  const ok = await run(options, stop.signal)
  return exitCode === 0 && !ok ? 1 : exitCode
}

async function run(options: DemoOptions, signal: AbortSignal): Promise<boolean> {
  const screen = new Screen(options.json)
  if (options.compare) {
    const summary = await runCompare(options, screen, signal)
    screen.print(`\n${compareWords(summary, screen.colors)}`)
    if (options.json) process.stdout.write(`${JSON.stringify(summary, null, 2)}\n`)
    return summary.ok
  }
  if (options.log === undefined) {
    const summary = await runLive(options, screen, signal)
    screen.print(`\n${liveWords(summary, screen.colors)}`)
    if (options.json) process.stdout.write(`${JSON.stringify(summary, null, 2)}\n`)
    return summary.ok
  }
  const summary = await runReplay(options, options.log, screen, signal)
  screen.print(`\n${replayWords(summary, screen.colors)}`)
  if (options.json) process.stdout.write(`${JSON.stringify(summary, null, 2)}\n`)
  return summary.ok
}
