import type { Settings } from '../settings/settings.ts'
import type { CurvesOutcome } from './curves.ts'
import { runFar } from './far.ts'
import { type LanesOutcome, runLanes } from './lanes.ts'
import { type PolicyOutcome, runPolicy } from './policy.ts'
import { runStraddle } from './straddle.ts'
import { runStream, type StreamOutcome } from './stream.ts'

export type Outcome = LanesOutcome | CurvesOutcome | StreamOutcome | PolicyOutcome

/**
 * Runs the scene of some settings. The same settings give the same outcome everywhere.
 *
 * @param logs - access logs for the scene that replays them. They are no settings, because they stay out of addresses
 */
export function run(settings: Settings, logs: readonly Blob[] = []): Promise<Outcome> {
  switch (settings.scene) {
    case 'straddle':
      return runStraddle(settings)
    case 'stream':
      return runStream(settings)
    case 'far':
      return runFar(settings)
    case 'policy':
      return runPolicy(settings, logs)
    default:
      return runLanes(settings)
  }
}
