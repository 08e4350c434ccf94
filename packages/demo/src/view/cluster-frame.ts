import Table from 'cli-table3'
import type { Cluster } from '../cluster.ts'
import type { ClusterStatus } from '../status.ts'
import { type Count, sum, type Tally } from '../traffic/tally.ts'
import type { Colors } from './colors.ts'
import { count, plural, safeText, seconds } from './format.ts'

/** Facts about the gateways and their store that every frame shows. Times are milliseconds. */
export interface ClusterView {
  readonly storeText: string
  readonly elapsed: number
  readonly total: number
  readonly gateways: readonly { readonly about: string; readonly state: string; readonly count: Count; readonly syncs: number }[]
  readonly status: ClusterStatus
  readonly rates: { readonly syncs: number; readonly operations: number }
}

export function title(colors: Colors): string {
  return `${colors.bold('Weir')} ${colors.dim('·')} three gateways, one limit, and no request waits for a store`
}

/** The gateways' part of a view. */
export function gatewayViews({ gateways }: Cluster, tally: Tally): ClusterView['gateways'] {
  return gateways.map(({ about, snapshot, baseline }, i) => ({
    about,
    state: snapshot?.state ?? 'starting',
    count: tally.gateways[i] ?? { allowed: 0, rejected: 0, errors: 0 },
    syncs: (snapshot?.sync.exchanges ?? 0) - (baseline?.sync.exchanges ?? 0),
  }))
}

/** The frame until the gateways are synced and warm. */
export function startFrame(colors: Colors): string {
  return ['', title(colors), colors.dim('starting a store, a backend and three gateways, and warming them up'), ''].join('\n')
}

/** Title, store, time, and a line for each gateway. */
export function clusterHead(view: ClusterView, colors: Colors): string[] {
  return [
    '',
    title(colors),
    `${colors.dim('store')}  ${view.storeText}`,
    `${colors.dim('time ')}  ${seconds(view.elapsed)} of ${seconds(view.total)}`,
    clusterTable(view, colors),
  ]
}

function clusterTable({ gateways }: ClusterView, colors: Colors): string {
  const table = new Table({
    head: ['gateway', 'allowed', 'rejected', 'syncs', 'state'].map((text) => colors.dim(text)),
    colAligns: ['left', 'right', 'right', 'right', 'left'],
    style: { head: [], border: colors.isColorSupported ? ['grey'] : [], compact: true },
  })
  for (const { about, state, count: own, syncs } of gateways) {
    table.push([
      about,
      count(own.allowed),
      count(own.rejected),
      count(syncs),
      state === 'synced' ? colors.green(state) : colors.yellow(state),
    ])
  }
  const total = sum(gateways.map((gateway) => gateway.count))
  const syncs = gateways.reduce((all, gateway) => all + gateway.syncs, 0)
  table.push(['together', count(total.allowed), count(total.rejected), count(syncs), ''].map((text) => colors.bold(text)))
  return table.toString()
}

export function storeLine({ status, rates }: ClusterView, colors: Colors): string {
  const operations = `${count(rates.operations)} ${status.commands === undefined ? 'keys synced' : 'Redis commands'} a second`
  return `${colors.dim('store   ')} ${count(status.nodes)} live processes, ${count(rates.syncs)} syncs and ${operations}${status.failures > 0 ? colors.red(`, ${plural(status.failures, 'failed sync')}`) : ''}`
}

export function blockedLine({ blocked }: ClusterStatus, colors: Colors): string {
  const shown = blocked.slice(0, 4).map(({ key, left }) => `${colors.red(safeText(key, 24))} ${seconds(left)} left`)
  return `${colors.dim('blocked ')} ${shown.length === 0 ? 'no client' : shown.join(', ')}${blocked.length > 4 ? ` and ${blocked.length - 4} more` : ''}`
}
