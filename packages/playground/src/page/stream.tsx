import type { StreamOutcome } from '../runs/stream.ts'
import { duration, whole } from '../tables/format.ts'
import { streamTable } from '../tables/tables.ts'
import { Figures } from './figures.tsx'

const HEIGHT = 90

/** A picture for each algorithm: what came, and what went on. */
export function Stream({ outcome, embedded }: { readonly outcome: StreamOutcome; readonly embedded: boolean }) {
  const { came, rows, pace } = outcome
  // What a spike lets through is more than the picture has room for: it is cut off, and the table tells.
  const top = Math.max(4 * pace, 2)
  return (
    <section class="panel results" aria-label="One stream, every algorithm">
      <ul class="legend">
        <li style={{ '--mark': 'var(--track)' }}>came</li>
        <li style={{ '--mark': 'var(--ok)' }}>went on</li>
      </ul>
      <div class="many">
        {rows.map(({ name, went, admitted, longestWait }) => (
          <figure key={name}>
            <figcaption>
              <code>{name}</code>
            </figcaption>
            <svg
              viewBox={`0 0 ${came.length} ${HEIGHT}`}
              preserveAspectRatio="none"
              role="img"
              aria-label={`${name}: ${whole(admitted)} of ${whole(sum(came))} went on, ${longestWait === 0 ? 'none waited' : `the longest wait was ${duration(longestWait)}`}`}
            >
              <path d={shapeOf(came, top)} fill="var(--track)" />
              <path d={shapeOf(went, top)} fill="var(--ok)" />
              <path class="pace" d={`M0 ${HEIGHT - (pace / top) * HEIGHT}H${came.length}`} />
            </svg>
          </figure>
        ))}
      </div>
      {!embedded && <Figures table={streamTable(outcome)} />}
    </section>
  )
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0)
}

function shapeOf(counts: readonly number[], top: number): string {
  return counts
    .map((count, index) => (count === 0 ? '' : `M${index} ${HEIGHT}V${HEIGHT - (Math.min(count, top) / top) * HEIGHT}h.85V${HEIGHT}z`))
    .join('')
}
