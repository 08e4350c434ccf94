import process from 'node:process'

/** The functions of the runtime that the clock uses. Tests replace them. */
export interface RequestRuntime {
  /** Wall clock. 0 outside of requests, where nothing may be started. */
  now(): number
  /** A timer that ends with the request that sets it. */
  sleep(callback: () => void, delay: number): unknown
  wake(handle: unknown): void
  /** Keeps the running request open until the promise settles, although its response was sent. */
  waitUntil(promise: Promise<unknown>): void
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/**
 * The longest sleep of a request that runs timers, in milliseconds. Another request may set an earlier timer meanwhile, and can't wake this
 * one.
 */
const LONGEST_SLEEP = 20

/**
 * The clock of runtimes without a life of their own, such as Cloudflare Workers: timers and connections end with the request that made
 * them, and none may be made outside of a request. So timers are entries in memory here. The requests run them: each one that reads the
 * clock runs the timers that are due, and one that waits for something runs them until it ends.
 */
export class RequestClock {
  readonly driven: boolean = true
  readonly #runtime: RequestRuntime
  readonly #timers = new Set<Timer>()
  /** When the first timer is due, or earlier. */
  #next = Number.POSITIVE_INFINITY
  /** The wall clock at the first request, from which time is counted. */
  #origin: number | undefined
  #time = 0

  constructor(runtime: RequestRuntime) {
    this.#runtime = runtime
  }

  now(): number {
    return this.#runtime.now()
  }

  monotonic(): number {
    const now = this.#read()
    if (now >= this.#next) {
      // In a microtask, because the caller may be in the middle of a decision.
      this.#next = Number.POSITIVE_INFINITY
      queueMicrotask(() => this.#run())
    }
    return now
  }

  setTimeout(callback: () => void, delay: number): Timer {
    const timer = { at: this.#read() + Math.max(0, delay), callback }
    this.#timers.add(timer)
    this.#next = Math.min(this.#next, timer.at)
    return timer
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as Timer)
  }

  /** If the running request ends before the callback was called, the next one calls it. */
  defer(callback: () => void): void {
    const timer = this.setTimeout(() => {
      release()
      callback()
    }, 0)
    const release = this.#hold(() => this.#timers.has(timer))
  }

  hold(): () => void {
    let held = true
    const wake = this.#hold(() => held)
    return () => {
      held = false
      wake()
    }
  }

  /** Whether code runs outside of a request. */
  get stopped(): boolean {
    return this.#runtime.now() === 0
  }

  /** Keeps the running request open, and runs timers in it, as long as needed. Returns a function that ends its sleep. */
  #hold(needed: () => boolean): () => void {
    if (this.stopped) return () => {}
    let wake = (): void => {}
    const drive = async (): Promise<void> => {
      while (needed()) {
        await new Promise<void>((resolve) => {
          const handle = this.#runtime.sleep(resolve, Math.max(0, Math.min(LONGEST_SLEEP, this.#next - this.#read())))
          wake = () => {
            this.#runtime.wake(handle)
            resolve()
          }
        })
        if (this.#read() >= this.#next) this.#run()
      }
    }
    this.#runtime.waitUntil(drive())
    return () => wake()
  }

  #read(): number {
    const wall = this.#runtime.now()
    if (wall === 0) return this.#time
    this.#origin ??= wall - this.#time
    // The wall clock may be set back.
    this.#time = Math.max(this.#time, wall - this.#origin)
    return this.#time
  }

  /** Runs the timers that are due, in the order of their times. */
  #run(): void {
    const now = this.#read()
    const due: Timer[] = []
    this.#next = Number.POSITIVE_INFINITY
    for (const timer of this.#timers) {
      if (timer.at <= now) due.push(timer)
      else this.#next = Math.min(this.#next, timer.at)
    }
    for (const timer of due.sort((a, b) => a.at - b.at)) {
      if (!this.#timers.delete(timer)) continue
      try {
        timer.callback()
      } catch (error) {
        // As an error of a timer of Node.js, it must not keep the others from running.
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}

/** The functions of Cloudflare Workers. */
export const workersRuntime: RequestRuntime = {
  now: () => Date.now(),
  sleep: (callback, delay) => setTimeout(callback, delay),
  wake: (handle) => clearTimeout(handle as NodeJS.Timeout),
  waitUntil: (promise) => {
    const workers = process.getBuiltinModule?.('cloudflare:workers' as 'node:process') as
      | { waitUntil?(promise: Promise<unknown>): void }
      | undefined
    workers?.waitUntil?.(promise)
  },
}

/** Whether this is Cloudflare Workers, or a runtime that behaves as it does. */
export function inWorkers(): boolean {
  return (globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'
}

/** Keeps the running request open until the promise settles, even if its client leaves. Needed in Workers only. */
export function keepRequest(promise: Promise<unknown>): void {
  if (inWorkers()) workersRuntime.waitUntil(promise.catch(() => {}))
}
