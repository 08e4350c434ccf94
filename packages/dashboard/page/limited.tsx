import { useState } from 'preact/hooks'
import type { LimitedView, Mode } from '../src/protocol.ts'
import { visible } from '../src/visible.ts'
import { addressOf, MODES } from './address.ts'
import { clock, count, keyName, many, REASONS } from './format.ts'

const SHOWN = 10

interface LimitedProps {
  readonly limited: readonly LimitedView[]
  readonly mode: Mode
  /** Whether the rows contain several keys, and name them. */
  readonly named?: boolean
}

/** The keys whose requests are rejected now, most rejections in the last minute first. */
export function Limited({ limited, mode, named = true }: LimitedProps) {
  const [all, showAll] = useState(false)
  const rows = limited.filter((one) => one.mode === mode)
  return (
    <section class="panel" aria-labelledby="limited">
      <h2 id="limited">
        Limited now <span class="badge">{rows.length}</span>
        {mode !== 'enforced' && <span class="tag">{MODES[mode]}: no request is rejected</span>}
      </h2>
      {rows.length === 0 ? (
        <p class="soft">{emptyText(mode, named)}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Reason</th>
              <th scope="col" class="number">
                Last minute
              </th>
              <th scope="col" class="number">
                Total
              </th>
              <th scope="col" class="number">
                First
              </th>
              <th scope="col" class="number">
                Last
              </th>
              <th scope="col">Rejections</th>
            </tr>
          </thead>
          <tbody>
            {(all ? rows : rows.slice(0, SHOWN)).map((one) => (
              <Row key={`${one.policy} ${one.key} ${one.reason}`} one={one} named={named} />
            ))}
          </tbody>
        </table>
      )}
      {rows.length > SHOWN && (
        <button type="button" class="quiet" onClick={() => showAll(!all)}>
          {all ? 'Show fewer' : `Show all ${rows.length}`}
        </button>
      )}
    </section>
  )
}

function emptyText(mode: Mode, named: boolean): string {
  if (named) return mode === 'enforced' ? 'No key is limited.' : 'No key would be limited.'
  return mode === 'enforced' ? "This key isn't limited." : "This key wouldn't be limited."
}

function Row({ one, named }: { one: LimitedView; named: boolean }) {
  const { policy, key, reason, lastMinute, total, since, last, processes, spark } = one
  return (
    <tr>
      <th scope="row">
        {named && (
          <a class="key" href={addressOf('key', key)} title={keyName(key)}>
            {keyName(key)}
          </a>
        )}
        <span class="rule">
          <a href={addressOf('policy', policy)}>{visible(policy)}</a>
          {processes > 1 && ` · in ${many(processes, 'process', 'processes')}`}
        </span>
      </th>
      <td data-label="Reason">{REASONS[reason] ?? visible(reason)}</td>
      <td class={`number ${lastMinute > 0 ? 'no' : 'soft'}`} data-label="Last minute">
        {count(lastMinute)}
      </td>
      <td class="number" data-label="Total">
        {count(total)}
      </td>
      <td class="number" data-label="First">
        <Time at={since} />
      </td>
      <td class="number" data-label="Last">
        <Time at={last} />
      </td>
      <td data-label="Rejections">
        <Spark counts={spark} />
      </td>
    </tr>
  )
}

function Time({ at }: { at: number }) {
  return <time dateTime={new Date(at).toISOString()}>{clock(at)}</time>
}

const [WIDTH, HEIGHT, STEPS] = [120, 24, 60]

/** Rejections in steps of 5 s, the newest on the right. */
function Spark({ counts }: { counts: readonly number[] }) {
  const most = Math.max(1, ...counts)
  const step = WIDTH / STEPS
  const bars = counts.map((value, i) => {
    const x = WIDTH - (counts.length - i) * step
    const height = value === 0 ? 0 : Math.max(1, (value / most) * HEIGHT)
    return height === 0 ? '' : `M${x.toFixed(1)} ${HEIGHT}v${(-height).toFixed(1)}h${(step * 0.8).toFixed(1)}V${HEIGHT}z`
  })
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT} role="img" aria-label={sparkText(counts, most)}>
      <path d={bars.join('')} />
    </svg>
  )
}

function sparkText(counts: readonly number[], most: number): string {
  const minutes = Math.max(1, Math.round((counts.length * 5) / 60))
  return `At most ${count(counts.length === 0 ? 0 : most)} rejections in 5 s during the last ${many(minutes, 'minute')}`
}
