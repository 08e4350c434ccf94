import { useEffect, useState } from 'preact/hooks'
import type { Runner } from '../browser/runner.ts'
import type { Outcome } from '../runs/run.ts'
import type { Settings } from '../settings/settings.ts'

/** The outcome of a run. The last one stays while the next is running. */
export interface Found {
  /** The settings that led to the outcome or the error. */
  readonly of: Settings | undefined
  readonly outcome: Outcome | undefined
  readonly error: string | undefined
  readonly running: boolean
}

/** Milliseconds without a change before a run starts, because moving a slider would start many runs. */
const REST = 120

export function useOutcome(runner: Runner, settings: Settings): Found {
  const [found, setFound] = useState<Found>({ of: undefined, outcome: undefined, error: undefined, running: true })
  useEffect(() => {
    let wanted = true
    setFound((before) => ({ ...before, running: true }))
    const timer = setTimeout(() => {
      runner.run(settings).then(
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
  }, [settings])
  return found
}
