import type { ComponentChildren } from 'preact'
import type { Value } from '../settings/control.ts'
import { type Settings, writeAddress } from '../settings/settings.ts'
import { saidOf } from '../tables/said.ts'
import { curvesTable } from '../tables/tables.ts'
import { Curves } from './curves.tsx'
import { Figures } from './figures.tsx'
import { Lanes } from './lanes.tsx'
import { PolicyView } from './policy.tsx'
import { Stream, StreamTables } from './stream.tsx'
import type { Found } from './use-outcome.ts'
import { Ways } from './ways.tsx'

interface OutcomeProps {
  readonly settings: Settings
  readonly found: Found
  /** Milliseconds at which a film begins. Undefined for the default of the scene. */
  readonly begin?: number | undefined
  readonly onChange: (values: Readonly<Record<string, Value>>) => void
  /** Controls beside the picture. Without them the page is embedded, and shows only the picture. */
  readonly children?: ComponentChildren
}

/** The controls and the picture together, so that a narrow page can keep both visible, and the tables below them. */
export function OutcomeView({ settings, found, begin, onChange, children }: OutcomeProps) {
  const { of, outcome, error, running } = found
  const embedded = children === undefined
  return (
    <div
      class={`scene outcome${running ? ' running' : ''}`}
      aria-busy={running}
      data-of={of === undefined ? '' : writeAddress(of)}
      data-digest={outcome?.digest}
    >
      {!embedded && (
        <p class="hidden" role="status">
          {outcome === undefined ? '' : saidOf(outcome)}
        </p>
      )}
      <div class="stage">
        {children}
        <div class="picture" key={settings.scene}>
          {error !== undefined && (
            <p class="panel error" role="alert">
              {error}
            </p>
          )}
          {outcome === undefined && error === undefined && <p class="panel">Running…</p>}
          {outcome !== undefined && running && <p class="stale">Running. Still the previous settings:</p>}
          {outcome?.kind === 'lanes' && <Lanes {...{ outcome, settings, embedded, begin, onChange }} />}
          {outcome?.kind === 'curves' && <Curves outcome={outcome} embedded={embedded} />}
          {outcome?.kind === 'stream' && <Stream outcome={outcome} embedded={embedded} />}
          {outcome?.kind === 'policy' && <PolicyView outcome={outcome} />}
        </div>
      </div>
      {outcome !== undefined && !embedded && (
        <div class="details">
          {outcome.kind === 'lanes' && <Ways outcome={outcome} />}
          {outcome.kind === 'curves' && (
            <div class="panel">
              <Figures table={curvesTable(outcome)} />
            </div>
          )}
          {outcome.kind === 'stream' && <StreamTables outcome={outcome} />}
          <p class="fingerprint">
            Fingerprint of all decisions: <code>{outcome.digest}</code>. The address of this page contains all settings of the run.
          </p>
        </div>
      )}
    </div>
  )
}
