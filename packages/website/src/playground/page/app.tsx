import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import type { Runner } from '../browser/runner.ts'
import type { Value } from '../settings/control.ts'
import { anchorOf, SCENES, sceneOf } from '../settings/scenes.ts'
import { readAddress, type Settings, settingsOf, writeAddress } from '../settings/settings.ts'
import { Controls } from './controls.tsx'
import { CopyButton } from './copy-button.tsx'
import { EMBEDDED, useHeightTold } from './embedded.ts'
import { LogField, NO_LOGS } from './log-field.tsx'
import { OutcomeView } from './outcome.tsx'
import { useOutcome } from './use-outcome.ts'

/** The documentation, and its page that shows the test of each promise. */
const HOME = '../index.html'
const ABOUT = '../guides/try-it.html'

export function App({ runner }: { readonly runner: Runner }) {
  const [settings, setSettings] = useState<Settings>(() => readAddress(location.search))
  // Registered before the first paint, so that a visitor who goes back immediately is not missed.
  useLayoutEffect(() => {
    const back = (): void => setSettings(readAddress(location.search))
    addEventListener('popstate', back)
    return () => removeEventListener('popstate', back)
  }, [])
  // Replaces an invalid address too, so that it matches the running scene.
  useEffect(() => {
    if (EMBEDDED === undefined) history.replaceState(null, '', writeAddress(settings))
  }, [settings])
  const scene = sceneOf(settings.scene)
  const [logs, setLogs] = useState(NO_LOGS)
  const found = useOutcome(runner, settings, scene.replaysLogs ? logs.files : NO_LOGS.files)
  useHeightTold(found.outcome)
  const change = (values: Readonly<Record<string, Value>>): void => {
    setSettings((before) => settingsOf(before.scene, { ...before.values, ...values }))
  }
  const about = `${ABOUT}#${anchorOf(scene)}`
  if (EMBEDDED !== undefined) {
    return (
      <main class="embedded">
        <p class="promise">{scene.promise}</p>
        <OutcomeView settings={settings} found={found} begin={EMBEDDED.begin} onChange={change} />
        <p class="tested">
          <a href={writeAddress(settings)} target="_top">
            Change it in the playground
          </a>{' '}
          ·{' '}
          <a href={about} target="_top">
            Where it is tested
          </a>
        </p>
      </main>
    )
  }
  return (
    <>
      <Header settings={settings} onScene={(name) => setSettings(settingsOf(name))} />
      <main>
        <div class="title">
          <h1>{scene.title}</h1>
          <CopyButton
            label="Share"
            text={location.origin + location.pathname + writeAddress(settings)}
            done={scene.replaysLogs && logs !== NO_LOGS ? 'Link copied. Your log is not part of it.' : 'Link copied.'}
            otherwise="The browser did not allow it: copy the address of this page."
          />
        </div>
        <p class="promise">{scene.promise}</p>
        <p class="tested">
          <a href={about}>Where it is tested</a>: <code>{scene.tested}</code>
        </p>
        <OutcomeView settings={settings} found={found} onChange={change}>
          <Controls scene={scene} settings={settings} onChange={change}>
            {scene.replaysLogs && <LogField logs={logs} onChange={setLogs} />}
          </Controls>
        </OutcomeView>
      </main>
    </>
  )
}

function Header({ settings, onScene }: { readonly settings: Settings; readonly onScene: (name: string) => void }) {
  return (
    <header>
      <a class="home" href={HOME}>
        Weir
      </a>
      <nav aria-label="Scenes">
        {SCENES.map(({ name, title }) => (
          <a
            key={name}
            href={`?scene=${name}`}
            aria-current={name === settings.scene ? 'page' : undefined}
            onClick={(event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return
              event.preventDefault()
              history.pushState(null, '', `?scene=${name}`)
              onScene(name)
            }}
          >
            {title}
          </a>
        ))}
      </nav>
    </header>
  )
}
