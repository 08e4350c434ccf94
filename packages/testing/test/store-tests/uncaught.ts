import { afterAll, beforeAll } from 'vitest'

/**
 * Collects errors that would end the process, instead of the test runner, which would fail the running test.
 *
 * @returns errors that no code caught, and unhandled rejections
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
