import Table from 'cli-table3'
import type { Cluster } from '../cluster.ts'
import type { ClusterStatus } from '../status.ts'
import { type Count, sum, type Tally } from '../traffic/tally.ts'
import type { Colors } from './colors.ts'
import { count, safeText, seconds } from './format.ts'

/** Facts about the gateways and their store that every frame shows. Times are milliseconds. */
export interface ClusterView {
  readonly storeText: string
  /** The beginning of the demo's keys in the store. Undefined if other demos can't share the store. */
  readonly namespace: string | undefined
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
    ...(view.namespace === undefined ? [] : [`${colors.dim('namespace')}  ${view.namespace}`]),
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
  const operations = `${count(rates.operations)} ${status.commands === undefined ? 'keys' : 'commands'} a second`
  return `${colors.dim('store   ')} ${count(status.nodes)} live processes, ${count(rates.syncs)} syncs and ${operations}${status.failures > 0 ? colors.red(`, ${count(status.failures)} failed`) : ''}`
}

export function limitedLine({ limited }: ClusterStatus, colors: Colors): string {
  const shown = limited.slice(0, 2).map(({ key, left }) => `${colors.red(safeText(key, 14))} ${seconds(left)} left`)
  return `${colors.dim('limited ')} ${shown.length === 0 ? 'no client' : shown.join(', ')}${limited.length > 2 ? ` and ${limited.length - 2} more` : ''}`
}

/** The requests of each gateway so far: `gateways 58+20 55+20 60+19`. */
export function gatewaysText({ gateways }: ClusterView): string {
  return `gateways ${gateways.map(({ count: own }) => `${count(own.allowed)}+${count(own.rejected)}`).join(' ')}`
}

export function ratesText({ rates, status }: ClusterView): string {
  return `${count(rates.syncs)} syncs/s ${count(rates.operations)} ${status.commands === undefined ? 'keys/s' : 'commands/s'}`
}

/** Parts for an output without a terminal, on lines that fit into 80 columns. */
export function timedLines(time: string, ...lines: readonly (readonly string[])[]): string {
  return lines.map((parts, i) => `${(i === 0 ? time : '').padStart(7)} | ${parts.join(' | ')}`).join('\n')
}
