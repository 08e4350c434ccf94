// The time of the published tests. It is replaced before Weir is loaded, because Weir remembers the functions that it found.
import { mock } from 'node:test'

// Time passes only while a test sleeps, so that no case depends on the speed of the machine.
const HOUR = 3_600_000
let now = HOUR * Math.ceil(Date.now() / HOUR)
Date.now = () => now
const { setTimeout } = globalThis
globalThis.setTimeout = Object.assign((callback: () => void, ms = 0): unknown => {
  const sleeps = Function.prototype.toString.call(callback).includes('[native code]')
  if (!sleeps) return setTimeout(callback, ms)
  return setImmediate(() => {
    now += ms
    callback()
  })
}, setTimeout) as typeof setTimeout

// Weir reads `process.hrtime` too, which the fake timers of node:test leave alone. A failed test leaves its fake timers behind.
const { hrtime } = process
const followDate = () => {
  process.hrtime = Object.assign((): [number, number] => [Math.floor(Date.now() / 1e3), (Date.now() % 1e3) * 1e6], hrtime)
}
followDate()
const timers = Object.getPrototypeOf(mock.timers)
const { enable, reset } = timers
timers.enable = function (...options: unknown[]) {
  reset.call(this)
  enable.apply(this, options)
  followDate()
}
timers.reset = function () {
  reset.call(this)
  followDate()
}

/** Our windows begin at whole multiples of their length, and the plugin's with a test's first request. Both begin with an hour. */
export function beginAnHour(): void {
  now = HOUR * Math.ceil((now + 1) / HOUR)
}
