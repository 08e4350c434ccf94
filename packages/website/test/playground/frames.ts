import type { Browser, Page } from 'playwright-core'

interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly pid: number
  readonly tid: number
  /** Start and processor time, in microseconds. */
  readonly ts: number
  readonly tdur?: number
}

/**
 * The cost of pictures in milliseconds of processor time of the page's thread. Pictures per second depend more on the other load of the
 * machine.
 */
export interface Cost {
  readonly perSecond: number
  /** All tasks from one picture to the next: the median, and the 90th percentile. */
  readonly median: number
  readonly p90: number
  /** The median of scripts alone. */
  readonly scripts: number
  /** Tasks of 50 ms or more, which a visitor notices. */
  readonly long: number
}

const LONG = 50

/**
 * Measures the cost of a playing page's pictures, on a processor that is slowed down.
 *
 * @param slower - the factor of the slowdown
 */
export async function costOf(browser: Browser, page: Page, slower: number, seconds: number): Promise<Cost> {
  const session = await page.context().newCDPSession(page)
  await session.send('Emulation.setCPUThrottlingRate', { rate: slower })
  const tracing = await browser.newBrowserCDPSession()
  const events: TraceEvent[] = []
  tracing.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])))
  const complete = new Promise((resolve) => tracing.once('Tracing.tracingComplete', resolve))
  await tracing.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['devtools.timeline', 'toplevel'] },
  })
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  await tracing.send('Tracing.end')
  await complete

  const pictures = events.filter(({ name, ph }) => name === 'FireAnimationFrame' && ph === 'X').sort((one, other) => one.ts - other.ts)
  const [first] = pictures
  const tasks = events.filter(
    ({ name, ph, pid, tid }) => name === 'ThreadControllerImpl::RunTask' && ph === 'X' && pid === first?.pid && tid === first.tid,
  )
  // Each task counts for the last picture that had begun when it ended. The first and the last picture are incomplete.
  const costs = pictures.map(() => 0)
  for (const task of tasks) {
    const at = pictures.findLastIndex(({ ts }) => ts <= task.ts + (task.tdur ?? 0))
    if (at >= 0) costs[at] = (costs[at] ?? 0) + (task.tdur ?? 0) / 1000
  }
  const whole = costs.slice(1, -1)
  return {
    perSecond: pictures.length / seconds,
    median: quantile(whole, 0.5),
    p90: quantile(whole, 0.9),
    scripts: quantile(
      pictures.map(({ tdur = 0 }) => tdur / 1000),
      0.5,
    ),
    long: tasks.filter(({ tdur = 0 }) => tdur / 1000 >= LONG).length,
  }
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN
}
