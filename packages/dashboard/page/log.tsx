import type { LogEntry, Mode } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { clock } from './format.ts'

const TONES: Readonly<Record<string, string>> = {
  blocked: 'no',
  storeDown: 'no',
  overflow: 'warn',
  warning: 'warn',
  storeUp: 'ok',
  unblocked: 'ok',
}
const KINDS: Readonly<Record<LogEntry['kind'], string>> = {
  blocked: 'blocked',
  unblocked: 'unblocked',
  storeDown: 'store down',
  storeUp: 'store up',
  overflow: 'table full',
  nodes: 'processes',
  rules: 'rules',
  warning: 'warning',
}
const SHOWN = 12
/** The most entries of blocks, if there are other entries. */
const BLOCKS_SHOWN = 8

/** The newest events of all processes, with blocks of one kind of rules. */
export function LogList({ log, mode }: { log: readonly LogEntry[]; mode: Mode }) {
  const entries = shown(log.filter((entry) => (entry.mode ?? 'enforced') === mode || !isBlock(entry)))
  return (
    <section class="panel" aria-labelledby="log">
      <h2 id="log">Events</h2>
      {entries.length === 0 ? (
        <p class="soft">No events since this process started.</p>
      ) : (
        <ol class="log">
          {entries.map(({ time, kind, text, process }) => (
            <li key={`${time}${kind}${text}${process}`}>
              <time dateTime={new Date(time).toISOString()}>{clock(time)}</time>
              <span class={`dot ${TONES[kind] ?? ''}`}>{KINDS[kind] ?? kind}</span>
              <span class="text">
                {text}
                {process !== undefined && <span class="rule">{visible(process)}</span>}
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

function isBlock({ kind }: LogEntry): boolean {
  return kind === 'blocked' || kind === 'unblocked'
}

function shown(log: readonly LogEntry[]): readonly LogEntry[] {
  const rest = log.filter((entry) => !isBlock(entry))
  let blocks = Math.max(BLOCKS_SHOWN, SHOWN - rest.length)
  return log.filter((entry) => rest.includes(entry) || blocks-- > 0).slice(0, SHOWN)
}
