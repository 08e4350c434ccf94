import type { StreamOutcome } from '../runs/stream.ts'
import { duration, whole } from '../tables/format.ts'
import { streamTable } from '../tables/tables.ts'
import { Figures } from './figures.tsx'
import { Played } from './played.tsx'
import { Scroll } from './scroll.tsx'

const HEIGHT = 90
/** Number of bars in a row of the table. */
const TOGETHER = 5

/** A picture for each algorithm: offered and allowed requests. */
export function Stream({ outcome, embedded }: { readonly outcome: StreamOutcome; readonly embedded: boolean }) {
  const { came, rows, pace, bar } = outcome
  const length = came.length * bar
  // A spike may be higher than the picture, so it is cut off. The table shows its number.
  const top = Math.max(4 * pace, 2)
  return (
    <section class="panel" aria-label="One stream, every algorithm">
      <ul class="legend">
        <li style={{ '--mark': 'var(--offered)' }}>requests</li>
        <li style={{ '--mark': 'var(--ok)' }}>allowed</li>
        <li class="line" style={{ '--mark': 'var(--soft)' }}>
          the limit's pace
        </li>
      </ul>
      <Played key={length} length={length} step={bar} embedded={embedded}>
        <div class="many">
          {rows.map(({ name, went, allowed, longestWait }) => (
            <figure key={name}>
              <figcaption>
                <code>{name}</code>
              </figcaption>
              <div class="plot">
                <svg
                  viewBox={`0 0 ${came.length} ${HEIGHT}`}
                  preserveAspectRatio="none"
                  role="img"
                  aria-label={`${name}: ${whole(allowed)} of ${whole(sum(came))} requests allowed, ${longestWait === 0 ? 'no request waited' : `the longest wait was ${duration(longestWait)}`}`}
                >
                  <path d={shapeOf(came, top)} fill="var(--offered)" />
                  <path d={shapeOf(went, top)} fill="var(--ok)" />
                  <path class="pace" d={`M0 ${HEIGHT - (pace / top) * HEIGHT}H${came.length}`} />
                </svg>
                <div class="curtain" />
              </div>
            </figure>
          ))}
        </div>
      </Played>
    </section>
  )
}

/** The figures, and the pictures as a table. */
export function StreamTables({ outcome }: { readonly outcome: StreamOutcome }) {
  return (
    <div class="panel">
      <Bars outcome={outcome} />
      <Figures table={streamTable(outcome)} />
    </div>
  )
}

function Bars({ outcome: { came, rows, bar } }: { readonly outcome: StreamOutcome }) {
  return (
    <details>
      <summary>The pictures as a table</summary>
      <Scroll label="The pictures as a table">
        <table>
          <thead>
            <tr>
              <th scope="col">Until second</th>
              <th scope="col">Requests</th>
              {rows.map(({ name }) => (
                <th scope="col" key={name}>
                  <code>{name}</code>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {came.map((_, index) =>
              index % TOGETHER > 0 ? null : (
                <tr key={index}>
                  <th scope="row">{((index + TOGETHER) * bar) / 1000}</th>
                  {[came, ...rows.map(({ went }) => went)].map((counts, column) => (
                    <td key={column}>{whole(sum(counts.slice(index, index + TOGETHER)))}</td>
                  ))}
                </tr>
              ),
            )}
          </tbody>
        </table>
      </Scroll>
    </details>
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
