/** Wall and CPU time of something, in milliseconds. */
export interface Time {
  readonly wall: number
  readonly cpu: number
}

/** Runs `work` and returns its time. */
export function timed(work: () => void): Time {
  const cpu = process.cpuUsage()
  const begin = process.hrtime.bigint()
  work()
  const wall = Number(process.hrtime.bigint() - begin) / 1e6
  const { user, system } = process.cpuUsage(cpu)
  return { wall, cpu: (user + system) / 1e3 }
}

/** Measures like `timed`, for work that needs several turns of the event loop. */
export async function timedAsync(work: () => Promise<void>): Promise<Time> {
  const cpu = process.cpuUsage()
  const begin = process.hrtime.bigint()
  await work()
  const wall = Number(process.hrtime.bigint() - begin) / 1e6
  const { user, system } = process.cpuUsage(cpu)
  return { wall, cpu: (user + system) / 1e3 }
}
