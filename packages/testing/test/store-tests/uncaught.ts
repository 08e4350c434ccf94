import { afterAll, beforeAll } from 'vitest'

/**
 * Takes note of what would end the process from now on, in place of the runner, which would fail the test that runs by then.
 *
 * @returns what was thrown, or rejected, into nothing
 */
export function watchUncaught(): unknown[] {
  const uncaught: unknown[] = []
  const note = (error: unknown): void => void uncaught.push(error)
  let runners: readonly NodeJS.UncaughtExceptionListener[] = []
  beforeAll(() => {
    runners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException').on('uncaughtException', note)
    process.on('unhandledRejection', note)
  })
  afterAll(() => {
    process.off('uncaughtException', note)
    process.off('unhandledRejection', note)
    for (const runner of runners) process.on('uncaughtException', runner)
  })
  return uncaught
}
