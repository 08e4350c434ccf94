import { Cluster } from './cluster.ts'
import type { Arrival } from './log/exact.ts'
import { type ScheduledRequest, schedule } from './log/schedule.ts'
import { busiestWindow, type LogWindow } from './log/window.ts'
import type { DemoOptions } from './options.ts'
import { type ReplaySummary, replaySummary } from './report/replay-summary.ts'
import { type LastLook, Rates, statusOf } from './status.ts'
import { chooseStore } from './store/choose.ts'
import { pace, sleepUntil } from './traffic/pace.ts'
import { Sender } from './traffic/sender.ts'
import { Tally } from './traffic/tally.ts'
import { warmUp } from './traffic/warm-up.ts'
import { gatewayViews, startFrame, title } from './view/cluster-frame.ts'
import { count, duration, plural, seconds } from './view/format.ts'
import { type ReplayView, replayFrame, replayLine, whenLogged } from './view/replay-frame.ts'
import type { Screen } from './view/screen.ts'

/** Milliseconds between two lines of progress, if the screen is not a terminal. */
const LINE = 5_000

/** Sends the busiest part of an access log through the three gateways, at a multiple of its pace. */
export async function runReplay(options: DemoOptions, file: string, screen: Screen, signal: AbortSignal): Promise<ReplaySummary> {
  const { limit, spans, speed } = options
  const choice = chooseStore(options)
  const window = await busiestWindow(file, options.window, options.interval)
  const planned = schedule(window.records, window.from, options.interval, speed)
  const total = Math.min(options.duration ?? Number.POSITIVE_INFINITY, (window.to - window.from) / speed)
  const interval = options.interval / speed
  const cluster = new Cluster(choice)
  const tally = new Tally(cluster.gatewayCount, interval)
  const arrivals: Arrival[] = []
  const sent: ScheduledRequest[] = []
  let start = Date.now()
  let end = start
  let sender: Sender | undefined
  try {
    screen.animate(() => startFrame(screen.colors))
    await cluster.start({ limit, globalLimit: undefined, interval, spans, cooldown: 0, coordination: 'background' }, signal)
    announce(screen, cluster, window, options, total)
    await warmUp(cluster, signal)
    sender = new Sender(cluster.ports, (answer) => {
      tally.add(answer)
      // A failed request reached no limiter, so the exact limiter must not count it either.
      if (answer.status !== 0) arrivals.push({ client: answer.client, time: answer.arrived })
    })
    start = Math.ceil((Date.now() + 100) / interval) * interval
    const view = viewer(options, window, cluster, tally, start, total)
    screen.animate(() => replayFrame(view(), screen.colors))
    const lines = screen.mode === 'lines' ? setInterval(() => screen.line(replayLine(view())), LINE) : undefined
    await pace(
      until(planned, total),
      start,
      (request, due) => {
        sent.push(request)
        sender?.send(request, due)
      },
      signal,
    )
    await sleepUntil(start + total, signal)
    end = Math.max(start, Math.min(Date.now(), start + total))
    const status = statusOf(cluster, end)
    await sender.drain()
    clearInterval(lines)
    screen.rest(replayFrame(view({ end, status }), screen.colors))
  } finally {
    sender?.close()
    screen.rest()
    await cluster.stop()
  }
  return replaySummary({
    options,
    file,
    cluster,
    tally,
    window,
    sent,
    arrivals,
    start,
    end,
    interrupted: signal.aborted,
    firstError: sender.firstError,
  })
}

function* until(planned: readonly ScheduledRequest[], total: number): Generator<ScheduledRequest> {
  for (const request of planned) {
    if (request.at >= total) return
    yield request
  }
}

function announce(
  screen: Screen,
  { storeText }: Cluster,
  { from, to, records }: LogWindow,
  { limit, interval, speed }: DemoOptions,
  total: number,
): void {
  screen.line(title(screen.colors))
  screen.line(`store: ${storeText}`)
  screen.line(
    `replaying ${plural(records.length, 'request')} of ${whenLogged(from)} to ${whenLogged(to)} at ${count(speed)} times its speed, in ${seconds(total)}: ` +
      `${count(limit)} per ${duration(interval)} and client become ${count(limit)} per ${duration(interval / speed)}`,
  )
}

function viewer(
  options: DemoOptions,
  window: LogWindow,
  cluster: Cluster,
  tally: Tally,
  start: number,
  total: number,
): (last?: LastLook) => ReplayView {
  const rates = new Rates()
  return (last) => {
    const now = last?.end ?? Date.now()
    const status = last?.status ?? statusOf(cluster, now)
    const running = Math.floor(now / tally.interval)
    const whole = last !== undefined && (running - 1) * tally.interval >= start
    const elapsed = Math.min(total, Math.max(0, now - start))
    return {
      storeText: cluster.storeText,
      namespace: cluster.namespace,
      elapsed,
      total,
      logTime: window.from + elapsed * options.speed,
      gateways: gatewayViews(cluster, tally),
      status,
      rates: rates.add(now, status),
      limit: options.limit,
      logInterval: options.interval,
      whole,
      current: tally.at(whole ? running - 1 : running),
      rejected: [...tally.clients].filter(([, { rejected }]) => rejected > 0).sort(([, a], [, b]) => b.rejected - a.rejected),
    }
  }
}
