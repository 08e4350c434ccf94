import { tellStatus } from '../../inspect/status-text.ts'
import type { HeartbeatReply, HeartbeatRequest, StatusReport } from '../../store/contract.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'

/** The time for which statuses are kept up to date after they were last read, in milliseconds. */
const WATCH_FOR = 10_000

/**
 * Sends statuses between processes with heartbeats. A process that shows the cluster requests the others' statuses, and the others
 * report only while one process requests them. Without such a process this costs nothing.
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

  /** The last statuses of the other processes. Each call also requests new ones. */
  others(now: number): readonly StatusReport[] {
    if (now >= this.#until) this.#others = []
    this.#until = now + WATCH_FOR
    const since = now - this.#heardAt
    return this.#others.map((report) => ({ ...report, age: report.age + since }))
  }
}
