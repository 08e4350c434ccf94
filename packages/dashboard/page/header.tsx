import type { View } from '../src/protocol.ts'
import { addressOf } from './address.ts'
import { span } from './format.ts'
import { signOut } from './stream.ts'

const STATES: Readonly<Record<string, { text: string; tone: string }>> = {
  idle: { text: 'Not started', tone: '' },
  local: { text: 'This process alone', tone: '' },
  connecting: { text: 'Connecting', tone: 'warn' },
  synced: { text: 'Synced', tone: 'ok' },
  storeDown: { text: 'Without the store', tone: 'no' },
  closed: { text: 'Closed', tone: 'warn' },
}

/** The state as text, for the header and the title. */
export function stateOf(view: View | undefined, connected: boolean): { text: string; tone: string } {
  if (!connected) return { text: 'Reconnecting…', tone: 'warn' }
  return STATES[view?.state ?? ''] ?? { text: 'Unknown', tone: '' }
}

export function Header({ view, connected, signedIn }: { view: View | undefined; connected: boolean; signedIn: boolean }) {
  const { text, tone } = stateOf(view, connected)
  const away = view?.nodes.filter(({ state: of }) => of === 'storeDown').length ?? 0
  return (
    <>
      <header>
        <svg class="logo" viewBox="0 0 32 32" width="32" height="32" aria-hidden="true">
          <rect width="32" height="32" rx="8" />
          <path d="M5 12q4-4 8 0t8 0 6 0M5 19q4-4 8 0t8 0 6 0" />
        </svg>
        <h1>
          <a href={addressOf('overview')}>Weir</a>
        </h1>
        {view !== undefined && (
          <p class="node">
            Served by <b>{view.nodes.find(({ self }) => self)?.label}</b>
          </p>
        )}
        {view?.nodes.some(({ rules }) => rules !== undefined) === true && (
          <nav class="pages" aria-label="Pages">
            <a href={addressOf('rules')}>Rules</a>
          </nav>
        )}
        <p class={`state ${tone}`} role="status">
          {text}
        </p>
        {signedIn && (
          <button type="button" class="quiet" onClick={signOut}>
            Sign out
          </button>
        )}
      </header>
      {view !== undefined && !connected && (
        <p class="banner warn" role="alert">
          <b>This page can't reach its server.</b> The data is stale. The page reconnects by itself.
        </p>
      )}
      {connected && view !== undefined && (view.state === 'storeDown' || away > 0) && (
        <p class="banner no" role="alert">
          <b>
            {view.state === 'storeDown'
              ? `The store has been down for ${span(Math.max(1_000, view.storeDownMs))}.`
              : `${away} ${away === 1 ? 'process' : 'processes'} can't reach the store.`}
          </b>{' '}
          Each process decides with the counts it has, and syncs again once the store answers.
          {view.sync.lastError !== undefined && view.state === 'storeDown' && <code>{view.sync.lastError}</code>}
        </p>
      )}
    </>
  )
}
