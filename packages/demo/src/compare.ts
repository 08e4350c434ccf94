import { Cluster } from './cluster.ts'
import { DemoError } from './errors.ts'
import type { DemoOptions } from './options.ts'
import { FRAMEWORKS } from './processes/messages.ts'
import { type CompareSummary, compareSummary, type Way } from './report/compare-summary.ts'
import { chooseStore } from './store/choose.ts'
import { type ServerWork, workBetween, workOf } from './store/command-stats.ts'
import { pace, sleepUntil } from './traffic/pace.ts'
import { ABUSER, globalLimit, plannedTraffic } from './traffic/population.ts'
import { Sender } from './traffic/sender.ts'
import { Tally } from './traffic/tally.ts'
import { warmUp } from './traffic/warm-up.ts'
import { compareFrame, WAY_TEXTS } from './view/compare-frame.ts'
import { seconds } from './view/format.ts'
import type { Screen } from './view/screen.ts'

const WAYS = ['background', 'central'] as const

/** Sends the same traffic twice: first with counts synced in the background, then with a store that decides each request. */
export async function runCompare(options: DemoOptions, screen: Screen, signal: AbortSignal): Promise<CompareSummary> {
  const ways: Way[] = []
  let storeText = ''
  try {
    for (const coordination of WAYS) {
      if (signal.aborted) break
      const cluster = new Cluster(chooseStore(options))
      try {
        ways.push(await runWay(coordination, options, cluster, screen, signal))
      } finally {
        await cluster.stop()
      }
      storeText = cluster.storeText
    }
  } finally {
    screen.rest()
  }
  return compareSummary(options, ways, storeText, signal.aborted)
}

async function runWay(
  coordination: Way['coordination'],
  options: DemoOptions,
  cluster: Cluster,
  screen: Screen,
  signal: AbortSignal,
): Promise<Way> {
  const { limit, interval, spans, cooldown } = options
  const total = options.duration ?? 0
  const tally = new Tally(FRAMEWORKS.length, interval)
  let start = 0
  screen.animate(() => compareFrame({ coordination, storeText: cluster.storeText, start, total, count: tally.total() }, screen.colors))
  await cluster.start({ limit, globalLimit: globalLimit(limit), interval, spans, cooldown, coordination }, signal)
  const { url } = cluster
  if (url === undefined) throw new DemoError('--compare counts the commands of a Redis server, but there is no Redis server')
  await warmUp(cluster, signal)
  const sender = new Sender(cluster.ports, (answer) => tally.add(answer))
  let work: ServerWork
  let end: number
  try {
    start = Math.ceil((Date.now() + 100) / interval) * interval
    screen.line(`${WAY_TEXTS[coordination]}: requests for ${seconds(total)}, from the next interval on, in ${seconds(start - Date.now())}`)
    await sleepUntil(start, signal)
    const before = await workOf(url)
    await pace(plannedTraffic(options), start, (request, due) => sender.send(request, due), signal)
    await sleepUntil(start + total, signal)
    end = Math.max(start, Math.min(Date.now(), start + total))
    await sender.drain()
    work = workBetween(before, await workOf(url))
  } finally {
    sender.close()
  }
  await cluster.stop()
  return {
    coordination,
    ran: end - start,
    count: tally.total(),
    abusive: tally
      .intervals()
      .filter(({ ordinal }) => ordinal * interval >= start && (ordinal + 1) * interval <= end)
      .map(({ clients }) => clients.get(ABUSER)?.allowed ?? 0),
    latest: tally.latest,
    work,
    timings: cluster.gateways.flatMap(({ timing }) => (timing === undefined ? [] : [timing])),
    problem: cluster.lost[0] ?? sender.firstError,
  }
}
