import { useState } from 'preact/hooks'
import type { PolicyView } from '../src/protocol.ts'
import { count, many } from './format.ts'

/** A slider that compares another limit with the busiest counts of the last half hour. It changes nothing. */
export function LimitSlider({ policy: { busiest, capacity, algorithm } }: { policy: PolicyView }) {
  const [chosen, setChosen] = useState<number>()
  const limit = Math.max(1, Math.round(capacity))
  const value = chosen ?? limit
  const name = algorithm.includes('bucket') ? 'burst' : 'limit'
  return (
    <section class="panel" aria-labelledby="another-limit">
      <h2 id="another-limit">Try another {name}</h2>
      {busiest.length === 0 ? (
        <p class="soft">No key was used in the last half hour.</p>
      ) : (
        <>
          <label class="slider">
            <span class="hidden">Another {name}</span>
            <input
              type="range"
              min={1}
              max={Math.max(10, limit * 2)}
              value={value}
              onInput={(event) => setChosen(Number(event.currentTarget.value))}
            />
          </label>
          <p role="status">{effectOf(value, limit, busiest)}</p>
          <p class="soft">
            From the highest use of {many(busiest.length, 'key')} in the last half hour. The {name} is {count(limit)}. This page changes no
            rule.
          </p>
        </>
      )}
    </section>
  )
}

/** Keys that another limit would change. A key at the limit may have had more requests, so a higher limit would allow it more. */
function effectOf(value: number, limit: number, busiest: readonly number[]): string {
  const total = many(busiest.length, 'key')
  const limited = busiest.filter((used) => used >= limit).length
  if (value === limit) return `At ${count(value)}: ${limited} of ${total} reached the limit.`
  if (value > limit) return `At ${count(value)}: ${limited} of ${total} would be limited less.`
  return `At ${count(value)}: ${busiest.filter((used) => used > value).length} of ${total} would be limited more.`
}
