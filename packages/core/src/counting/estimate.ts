/**
 * Pure arithmetic of background counting: when to sync a count early, and which part of a key's traffic this process gets. `limit` is MAX.
 * `nodes` is n, the number of processes over which a key's traffic is spread.
 */

/** The numbers that decide about an early sync. */
export interface Countdown {
  /** Limit less the cluster's confirmed units (G) at the last sync. */
  room: number
  /** Own units sent and not yet acknowledged (f). */
  inFlight: number
  /** n = max(live nodes, 1/share). */
  nodes: number
  /** Units that others have probably taken since the last sync: r·(now − tSync). */
  extrapolated: number
  /** 2, or 3 when limit < 20·nodes. */
  divisor: number
}

/**
 * The number of unsent units u at which a key is synced early: the least u with
 *
 *     u >= max(1, (MAX − G − f − u − h) / (c·n)),   h = max((f + u)(n − 1), r·(now − tSync))
 *
 * solved for u. If every process follows it, their unsent units together are at most room/c.
 */
export function threshold({ room, inFlight, nodes, extrapolated, divisor }: Countdown): number {
  const byOwn = (room - nodes * inFlight) / ((divisor + 1) * nodes)
  const byRate = (room - inFlight - extrapolated) / (divisor * nodes + 1)
  return Math.max(1, Math.min(byOwn, byRate))
}

/** The divisor c of `threshold`: small limits are counted down in finer steps. */
export function divisorFor(limit: number, nodes: number): number {
  return limit < 20 * nodes ? 3 : 2
}

/** Exponentially weighted mean with weight 1/2: the others' rate over successive syncs. */
export function smooth(before: number, sample: number): number {
  return before === 0 ? sample : (before + sample) / 2
}

/** The part of a key's recent traffic that came through this process, with a prior of ten units spread evenly. */
export class Share {
  #own = 0
  #all = 0

  /**
   * @param own units this process took since the last sync
   * @param all units the cluster took since then
   * @param limit both sums are halved each time that the cluster has taken as much as it
   */
  add(own: number, all: number, limit: number): void {
    const decay = 2 ** (-all / limit)
    this.#own = this.#own * decay + own
    this.#all = this.#all * decay + all
  }

  /** In (0, 1]. Without any traffic 1/nodes. */
  value(nodes: number): number {
    return shareOf(this.#own, this.#all, nodes)
  }

  /** The same, for decisions without the store. */
  alone(nodes: number, limit: number): number {
    return shareOf(this.#own, this.#all, nodes, EVEN * limit)
  }
}

/**
 * The same for counts of whole intervals. If each sync added its counts, the last syncs of an interval would weigh most. They show mainly
 * others' units, and the first ones mainly own units, so the shares of all processes would add up to less than 1.
 */
export class IntervalShare {
  #own = 0
  #all = 0
  #ownBefore = 0
  #allBefore = 0
  #fade = 1

  /**
   * @param own units this process has taken in the running interval
   * @param all units the cluster has taken in it
   * @param limit earlier intervals count half each time that the cluster has taken as much as it
   */
  see(own: number, all: number, limit: number): void {
    this.#own = own
    this.#all = all
    this.#fade = 2 ** (-all / limit)
  }

  /** Takes the announced units of all processes. Own ones among them are those of the last sync, if there was one. */
  hear(all: number, limit: number): void {
    if (this.#all > 0 && all > this.#all) this.see(this.#own, all, limit)
  }

  /** The running interval has ended. */
  endInterval(): void {
    this.#ownBefore = this.#ownBefore * this.#fade + this.#own
    this.#allBefore = this.#allBefore * this.#fade + this.#all
    this.#own = 0
    this.#all = 0
    this.#fade = 1
  }

  /** In (0, 1]. Without any traffic 1/nodes. */
  value(nodes: number): number {
    return shareOf(this.#ownBefore * this.#fade + this.#own, this.#allBefore * this.#fade + this.#all, nodes)
  }

  /** The same, for decisions without the store. */
  alone(nodes: number, limit: number): number {
    return shareOf(this.#ownBefore * this.#fade + this.#own, this.#allBefore * this.#fade + this.#all, nodes, EVEN * limit)
  }
}

/** @param least units that must have been counted. Missing ones count as spread evenly */
function shareOf(own: number, all: number, nodes: number, least = 0): number {
  const prior = Math.max(PRIOR, least - all)
  return Math.min(1, (own + prior / nodes) / (all + prior))
}

const PRIOR = 10
/**
 * The part of the limit that must have been counted before a share is used without the store. The first processes to sync a key get no
 * counts of others, whose first units are still unsent: these are up to a third of the limit.
 */
const EVEN = 1 / 3

/**
 * Units that the other processes probably have unsent. This estimate assumes that they get their shares of the traffic, and send as late as
 * this process does.
 *
 * @param sent own units that the store has acknowledged
 * @param known the cluster's units, these included
 * @param room limit less `known`
 * @param share this process's part of the key's traffic
 */
export function heldBack(sent: number, known: number, room: number, share: number): number {
  return Math.max(0, Math.min(sent / share - known, EVEN * room))
}

/**
 * The most units of others that are taken over. However many a store reports, a sum must keep the own units in it, down to a millionth, or
 * they would be lost when the report is corrected.
 */
export function mostOthers(limit: number): number {
  return Math.max(2 ** 32, 4 * limit)
}
