import type { Value } from '../settings/control.ts'
import { type Settings, writeAddress } from '../settings/settings.ts'
import { saidOf } from '../tables/said.ts'
import { Curves } from './curves.tsx'
import { Lanes } from './lanes.tsx'
import { PolicyView } from './policy.tsx'
import { Stream } from './stream.tsx'
import type { Found } from './use-outcome.ts'

interface OutcomeProps {
  readonly settings: Settings
  readonly found: Found
  readonly embedded: boolean
  /** Milliseconds at which a film begins. */
  readonly begin: number
  readonly onChange: (values: Readonly<Record<string, Value>>) => void
}

export function OutcomeView({ settings, found: { of, outcome, error, running }, embedded, begin, onChange }: OutcomeProps) {
  return (
    <div
      class={running ? 'outcome running' : 'outcome'}
      aria-busy={running}
      data-of={of === undefined ? '' : writeAddress(of)}
      data-digest={outcome?.digest}
    >
      {!embedded && (
        <p class="hidden" role="status">
          {outcome === undefined ? '' : saidOf(outcome)}
        </p>
      )}
      {error !== undefined && (
        <p class="panel error" role="alert">
          {error}
        </p>
      )}
      {outcome === undefined && error === undefined && <p class="panel">Running…</p>}
      {outcome?.kind === 'lanes' && <Lanes {...{ outcome, settings, embedded, begin, onChange }} />}
      {outcome?.kind === 'curves' && <Curves outcome={outcome} embedded={embedded} />}
      {outcome?.kind === 'stream' && <Stream outcome={outcome} embedded={embedded} />}
      {outcome?.kind === 'policy' && <PolicyView outcome={outcome} />}
      {outcome !== undefined && !embedded && (
        <p class="fingerprint">
          Fingerprint of all decisions: <code>{outcome.digest}</code>. The address of this page contains all settings of the run.
        </p>
      )}
    </div>
  )
}
