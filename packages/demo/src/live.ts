import { Cluster } from './cluster.ts'
import type { DemoOptions } from './options.ts'
import { breakRedis, type Outage } from './outage.ts'
import { type LiveSummary, liveSummary } from './report/live-summary.ts'
import { type LastLook, Rates, statusOf } from './status.ts'
import { chooseStore } from './store/choose.ts'
import { pace, sleepUntil } from './traffic/pace.ts'
import { globalLimit, plannedTraffic } from './traffic/population.ts'
import { Sender } from './traffic/sender.ts'
import { Tally } from './traffic/tally.ts'
import { warmUp } from './traffic/warm-up.ts'
import { gatewayViews, startFrame, title } from './view/cluster-frame.ts'
import { seconds } from './view/format.ts'
import { type LiveView, liveFrame } from './view/live-frame.ts'
import { Lines } from './view/live-lines.ts'
import type { Screen } from './view/screen.ts'

/** Sends the traffic of a simulated population through three gateways, and shows the results live. */
export async function runLive(options: DemoOptions, screen: Screen, signal: AbortSignal): Promise<LiveSummary> {
  const { limit, interval, spans, cooldown } = options
  const total = options.duration ?? 0
  const everyone = globalLimit(limit)
  const cluster = new Cluster(chooseStore(options), !options.json)
  const tally = new Tally(cluster.gatewayCount, interval)
  const outage: Outage = { killed: undefined, restarted: undefined }
  let start = Date.now()
  let end = start
  let sender: Sender | undefined
  try {
    screen.animate(() => startFrame(screen.colors))
    await cluster.start({ limit, globalLimit: everyone, interval, spans, cooldown, coordination: 'background' }, signal)
    screen.line(title(screen.colors))
    screen.line(`store: ${cluster.storeText}`)
    if (cluster.namespace !== undefined) screen.line(`namespace: ${cluster.namespace}`)
    if (cluster.page !== undefined) screen.line(`dashboard: ${cluster.page}`)
    await warmUp(cluster, signal)
    sender = new Sender(cluster.ports, (answer) => tally.add(answer))
    // Starts at a boundary, so that the first interval is complete.
    start = Math.ceil((Date.now() + 100) / interval) * interval
    const view = viewer({ options, cluster, tally, outage, start, total, everyone })
    screen.animate(() => liveFrame(view(), screen.colors))
    const lines = new Lines(screen, view, start)
    const breaking = options.killRedis ? breakRedis(cluster, outage, start, total, signal) : undefined
    await pace(plannedTraffic(options), start, (request, due) => sender?.send(request, due), signal)
    await sleepUntil(start + total, signal)
    end = Math.max(start, Math.min(Date.now(), start + total))
    const status = statusOf(cluster, end)
    await sender.drain()
    await breaking
    lines.stop()
    screen.rest(liveFrame(view({ end, status }), screen.colors))
  } finally {
    sender?.close()
    screen.rest()
    await cluster.stop()
  }
  return liveSummary({
    options,
    cluster,
    tally,
    globalLimit: everyone,
    start,
    end,
    outage,
    interrupted: signal.aborted,
    firstError: sender.firstError,
  })
}

interface Watched {
  readonly options: DemoOptions
  readonly cluster: Cluster
  readonly tally: Tally
  readonly outage: Outage
  readonly start: number
  readonly total: number
  readonly everyone: number
}

/** @returns a function for the current view. With `last` it returns the view at the end, which shows the last complete interval */
function viewer({ options: { limit, interval }, cluster, tally, outage, start, total, everyone }: Watched): (last?: LastLook) => LiveView {
  const rates = new Rates()
  return (last) => {
    const now = last?.end ?? Date.now()
    const status = last?.status ?? statusOf(cluster, now)
    const running = Math.floor(now / interval)
    const whole = last !== undefined && (running - 1) * interval >= start
    const ordinal = whole ? running - 1 : running
    return {
      whole,
      storeText: cluster.storeText,
      namespace: cluster.namespace,
      elapsed: Math.min(total, Math.max(0, now - start)),
      total,
      gateways: gatewayViews(cluster, tally),
      status,
      rates: rates.add(now, status),
      limit,
      globalLimit: everyone,
      interval,
      current: tally.at(ordinal),
      past: tally.intervals().filter((one) => one.ordinal < ordinal),
      events: events(cluster, outage, start),
    }
  }
}

/** The outage of Redis and the reactions of the gateways, as lines. */
function events({ gateways }: Cluster, { killed, restarted }: Outage, start: number): string[] {
  const at = (time: number): string => seconds(time - start).padStart(7)
  const told = gateways.flatMap(({ about, states }) =>
    states.map(({ state, time }) => ({
      time,
      text: `${about} ${state === 'storeDown' ? 'lost Redis and applies its share of the limit' : 'is synced again'}`,
    })),
  )
  if (killed !== undefined) told.push({ time: killed, text: 'Redis was killed' })
  if (restarted !== undefined) told.push({ time: restarted, text: 'Redis was restarted without its data' })
  return told.sort((a, b) => a.time - b.time).map(({ time, text }) => `${at(time)}  ${text}`)
}
