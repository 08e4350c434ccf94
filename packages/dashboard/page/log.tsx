import type { View } from '../src/protocol.ts'
import { clock } from './format.ts'

const TONES: Readonly<Record<string, string>> = {
  blocked: 'no',
  storeDown: 'no',
  overflow: 'warn',
  warning: 'warn',
  storeUp: 'ok',
  unblocked: 'ok',
}
const SHOWN = 12
/** The most entries of blocks, if there are other entries. */
const BLOCKS_SHOWN = 8

export function LogList({ view }: { view: View }) {
  return (
    <section class="panel" aria-labelledby="log">
      <h2 id="log">Log</h2>
      {view.log.length === 0 ? (
        <p class="soft">Nothing since this process started to watch.</p>
      ) : (
        <ol class="log">
          {shown(view.log).map(({ time, kind, text }) => (
            <li key={`${time}${kind}${text}`}>
              <time dateTime={new Date(time).toISOString()}>{clock(time)}</time>
              <span class={`dot ${TONES[kind] ?? ''}`}>{kind}</span>
              <span class="text">{text}</span>
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

function shown(log: View['log']): View['log'] {
  const rest = log.filter(({ kind }) => kind !== 'blocked' && kind !== 'unblocked')
  let blocks = Math.max(BLOCKS_SHOWN, SHOWN - rest.length)
  return log.filter((entry) => rest.includes(entry) || blocks-- > 0).slice(0, SHOWN)
}
