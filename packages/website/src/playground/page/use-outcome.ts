import { useEffect, useState } from 'preact/hooks'
import type { Runner } from '../browser/runner.ts'
import type { Outcome } from '../runs/run.ts'
import type { Settings } from '../settings/settings.ts'

/** The outcome of a run. The last one of the same scene stays while the next is running. */
export interface Found {
  /** The settings that led to the outcome or the error. */
  readonly of: Settings | undefined
  readonly outcome: Outcome | undefined
  readonly error: string | undefined
  readonly running: boolean
}

/** Milliseconds without a change before a run starts, because moving a slider would start many runs. */
const REST = 120

const NOTHING: Found = { of: undefined, outcome: undefined, error: undefined, running: true }

export function useOutcome(runner: Runner, settings: Settings, logs: readonly Blob[]): Found {
  const [found, setFound] = useState(NOTHING)
  useEffect(() => {
    let wanted = true
    setFound((before) => ({ ...before, running: true }))
    const timer = setTimeout(() => {
      runner.run(settings, logs).then(
        (outcome) => {
          if (wanted) setFound({ of: settings, outcome, error: undefined, running: false })
        },
        (error: Error) => {
          if (wanted) setFound({ of: settings, outcome: undefined, error: error.message, running: false })
        },
      )
    }, REST)
    return () => {
      wanted = false
      clearTimeout(timer)
    }
  }, [settings, logs])
  return found.of === undefined || found.of.scene === settings.scene ? found : NOTHING
}
