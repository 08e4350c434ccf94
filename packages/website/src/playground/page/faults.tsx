import type { Film } from '../picture/film.ts'
import type { Value } from '../settings/control.ts'
import type { Settings } from '../settings/settings.ts'

/** Intervals for which a fault lasts unless the visitor ends it. */
const LASTS = 2.3
const WHAT = [
  ['reject', 'Kill Redis'],
  ['hang', 'Hang Redis'],
  ['empty', 'Kill Redis, lose its data'],
  ['cut', 'Cut off half of the processes'],
] as const

interface FaultsProps {
  readonly settings: Settings
  readonly film: Film
  /** Milliseconds. */
  readonly time: number
  readonly onChange: (values: Readonly<Record<string, Value>>) => void
}

/** Starts a fault at the current moment. The run before it is the same, so the film continues at its position. */
export function Faults({ settings, film, time, onChange }: FaultsProps) {
  const position = time / film.interval
  const lasting = film.fault !== undefined && time >= film.fault.from && time < film.fault.until
  return (
    <fieldset class="faults" aria-label="Faults">
      {WHAT.map(([fault, label]) => (
        <button
          key={fault}
          type="button"
          class="quiet"
          aria-pressed={lasting && settings.values['fault'] === fault}
          onClick={() => onChange({ fault, from: position, until: position + LASTS })}
        >
          {label}
        </button>
      ))}
      <button type="button" disabled={!lasting} onClick={() => onChange({ until: position })}>
        Repair
      </button>
    </fieldset>
  )
}
