import { tellStatus } from '../../inspect/status-text.ts'
import type { HeartbeatReply, HeartbeatRequest, StatusReport } from '../../store/contract.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'

/** For so long after it was last asked for, a view of the cluster is kept up to date, in milliseconds. */
const WATCH_FOR = 10_000

/**
 * Exchanges statuses between processes through heartbeats. A process that shows the cluster asks for the others' statuses, and the others
 * report only while one asks. Unwatched it costs nothing.
 */
export class Watch {
  readonly #startedAt: number
  #until = Number.NEGATIVE_INFINITY
  #watched = false
  #others: readonly StatusReport[] = []
  #heardAt = 0

  /** @param startedAt on the monotonic clock, as all times here */
  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  /** The part of a heartbeat for statuses. */
  request(throttlers: readonly Coordinated[], now: number): Pick<HeartbeatRequest, 'status' | 'watch'> {
    const status = this.#watched ? tellStatus(throttlers, this.#startedAt, now) : undefined
    return {
      ...(status !== undefined && { status }),
      ...(now < this.#until && { watch: true as const }),
    }
  }

  heard({ watched, statuses }: HeartbeatReply, now: number): void {
    this.#watched = watched === true
    if (statuses === undefined) return
    this.#heardAt = now
    this.#others = statuses
  }

  /** The last statuses of the other processes. Each call also asks for new ones. */
  others(now: number): readonly StatusReport[] {
    if (now >= this.#until) this.#others = []
    this.#until = now + WATCH_FOR
    const since = now - this.#heardAt
    return this.#others.map((report) => ({ ...report, age: report.age + since }))
  }
}
