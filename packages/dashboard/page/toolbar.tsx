import type { Mode } from '../src/protocol.ts'
import { MODES, type Place, RANGES, type Range, set } from './address.ts'
import { timeZone } from './format.ts'

/** The filter of the lists, the time range of the charts, and the time zone. */
export function Toolbar({ place: { mode, range }, modes = true }: { place: Place; modes?: boolean }) {
  return (
    <div class="toolbar">
      {modes && (
        <fieldset class="choices">
          <legend class="hidden">Rules whose rejections are shown</legend>
          {(Object.entries(MODES) as [Mode, string][]).map(([name, text]) => (
            <button key={name} type="button" class="quiet" aria-pressed={mode === name} onClick={() => set({ mode: name })}>
              {text}
            </button>
          ))}
        </fieldset>
      )}
      <fieldset class="choices">
        <legend class="hidden">Time range of the charts</legend>
        {(Object.keys(RANGES) as Range[]).map((name) => (
          <button key={name} type="button" class="quiet" aria-pressed={range === name} onClick={() => set({ range: name })}>
            {name} min
          </button>
        ))}
      </fieldset>
      <span class="soft">Times in {timeZone()}</span>
    </div>
  )
}
