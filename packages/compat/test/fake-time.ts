import { onTestFinished, vi } from 'vitest'

/**
 * A clock that only a test advances. Timers stay real, because sockets need them. It begins shortly after the start of a window, because the
 * clock of a store is only accurate to a fraction of a millisecond.
 */
export function fakeTime(): (ms: number) => void {
  vi.useFakeTimers({ toFake: ['Date', 'hrtime'], now: Date.parse('2027-03-01T10:00:00.100Z') })
  onTestFinished(() => {
    vi.useRealTimers()
  })
  return (ms) => vi.advanceTimersByTime(ms)
}
