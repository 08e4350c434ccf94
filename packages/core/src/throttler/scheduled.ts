import type { Decision } from '../decide/decision.ts'
import type { ScheduleOptions, WrapOptions } from '../queue/options.ts'
import { invalidOption } from '../report/errors.ts'

/** The throttler that limits the functions. */
interface Acquiring {
  acquire(key: string, options?: ScheduleOptions): Promise<Decision>
  release(decision: Decision): void
  schedule<T>(key: string, run: () => T | PromiseLike<T>, options?: ScheduleOptions): Promise<T>
}

/** As the throttler's `schedule`. */
export async function scheduled<T>(
  throttler: Acquiring,
  key: string,
  run: () => T | PromiseLike<T>,
  options: ScheduleOptions | undefined,
): Promise<T> {
  if (typeof run !== 'function') throw invalidOption('run', run, 'a function such as () => send(mail)')
  const decision = await throttler.acquire(key, options)
  try {
    return await run()
  } finally {
    throttler.release(decision)
  }
}

/** As the throttler's `wrap`. */
export function wrapped<Args extends readonly unknown[], T, This>(
  throttler: Acquiring,
  run: (this: This, ...args: Args) => T | PromiseLike<T>,
  options: WrapOptions<Args, This>,
): (this: This, ...args: Args) => Promise<T> {
  if (typeof run !== 'function') throw invalidOption('run', run, 'a function')
  const { key, ...rest } = options ?? {}
  if (typeof key !== 'string' && typeof key !== 'function') throw invalidOption('key', key, 'a string, or a function of the arguments')
  async function wrapped(this: This, ...args: Args): Promise<T> {
    const counted = typeof key === 'function' ? key.call(this, ...args) : key
    return await throttler.schedule(counted, () => run.call(this, ...args), rest)
  }
  // Frameworks read the number of parameters.
  const { name, length } = run
  return Object.defineProperties(wrapped, { name: { value: name, configurable: true }, length: { value: length, configurable: true } })
}
