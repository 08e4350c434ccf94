/**
 * Pure arithmetic of counting in the background: when to exchange a count early, and which part of a key's traffic this node
 * sees. `limit` is MAX; `nodes` is n, the number of nodes that a key's traffic is spread over.
 */

/** Units and rates that an early exchange is timed by. */
export interface Countdown {
  /** Limit less what is known of the cluster (G) at the last exchange. */
  room: number
  /** Own units sent and not yet acknowledged (f). */
  inFlight: number
  /** n = max(live nodes, 1/share). */
  nodes: number
  /** Units that others are expected to have taken since the last exchange: r·(now − tSync). */
  extrapolated: number
  /** 2, or 3 when limit < 20·nodes. */
  divisor: number
}

/**
 * The number of unsynced units u at which a key is exchanged early: the least u with
 *
 *     u >= max(1, (MAX − G − f − u − h) / (c·n)),   h = max((f + u)(n − 1), r·(now − tSync))
 *
 * solved for u. If every node keeps to it, the units that nobody else knows of add up to at most room/c.
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

/** Exponentially weighted mean with weight 1/2: the others' rate from successive exchanges. */
export function smooth(before: number, sample: number): number {
  return before === 0 ? sample : (before + sample) / 2
}

/** How much of a key's recent traffic came through this node, with a prior of ten units spread evenly. */
export class Share {
  #own = 0
  #all = 0

  /**
   * @param own units this node took since the last exchange
   * @param all units the cluster took since then
   * @param limit both sums are halved each time that the cluster has taken as much as it
   */
  add(own: number, all: number, limit: number): void {
    const decay = 2 ** (-all / limit)
    this.#own = this.#own * decay + own
    this.#all = this.#all * decay + all
  }

  /** In (0, 1]; without any traffic 1/nodes. */
  value(nodes: number): number {
    return shareOf(this.#own, this.#all, nodes)
  }

  /** The same, to decide by without the store. */
  alone(nodes: number, limit: number): number {
    return shareOf(this.#own, this.#all, nodes, EVEN * limit)
  }
}

/**
 * The same for counts of whole intervals. If counts were added at each exchange, the last exchanges of an interval would
 * weigh most. They show mainly others' units, as the first ones show mainly own units, so the shares of all nodes would add
 * up to less than 1.
 */
export class IntervalShare {
  #own = 0
  #all = 0
  #ownBefore = 0
  #allBefore = 0
  #fade = 1

  /**
   * @param own units this node has taken in the running interval
   * @param all units the cluster has taken in it
   * @param limit intervals that are over count half each time that the cluster has taken as much as it
   */
  see(own: number, all: number, limit: number): void {
    this.#own = own
    this.#all = all
    this.#fade = 2 ** (-all / limit)
  }

  /** So many units of all processes were announced. Own ones among them are those of the last exchange, if there was one. */
  hear(all: number, limit: number): void {
    if (this.#all > 0 && all > this.#all) this.see(this.#own, all, limit)
  }

  /** The running interval is over. */
  endInterval(): void {
    this.#ownBefore = this.#ownBefore * this.#fade + this.#own
    this.#allBefore = this.#allBefore * this.#fade + this.#all
    this.#own = 0
    this.#all = 0
    this.#fade = 1
  }

  /** In (0, 1]; without any traffic 1/nodes. */
  value(nodes: number): number {
    return shareOf(this.#ownBefore * this.#fade + this.#own, this.#allBefore * this.#fade + this.#all, nodes)
  }

  /** The same, to decide by without the store. */
  alone(nodes: number, limit: number): number {
    return shareOf(this.#ownBefore * this.#fade + this.#own, this.#allBefore * this.#fade + this.#all, nodes, EVEN * limit)
  }
}

/** @param least units that must have been seen; those that are missing count as spread evenly */
function shareOf(own: number, all: number, nodes: number, least = 0): number {
  const prior = Math.max(PRIOR, least - all)
  return Math.min(1, (own + prior / nodes) / (all + prior))
}

const PRIOR = 10
/**
 * The part of the limit that must have been seen before a share is relied on without the store. The first processes to exchange a key
 * see no others, whose first units are still to be sent: these are up to a third of the limit.
 */
const EVEN = 1 / 3

/**
 * Units that the other processes are likely to hold back, judged by what this one has sent: they get their shares of the traffic
 * too, and send as late as it does.
 *
 * @param sent own units that the store has acknowledged
 * @param known the cluster's units, these included
 * @param room limit less `known`
 * @param share which part of the key's traffic is this process's
 */
export function heldBack(sent: number, known: number, room: number, share: number): number {
  return Math.max(0, Math.min(sent / share - known, EVEN * room))
}

/**
 * Units of the others that are taken over at most. However many a store claims, a sum with own units must keep these, down
 * to a millionth, or they would be lost when the claim is taken back.
 */
export function mostOthers(limit: number): number {
  return Math.max(2 ** 32, 4 * limit)
}
