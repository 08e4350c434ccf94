import type { tellStatus } from '../../inspect/status-text.ts'
import type { HeartbeatReply, HeartbeatRequest, StatusReport } from '../../store/contract.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'
import { loadCode } from '../../time/load-code.ts'

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
  /** Loaded when a status is requested, because most processes never report one. */
  #tell: typeof tellStatus | undefined
  #loading = false
  #others: readonly StatusReport[] = []
  #heardAt = 0

  /** @param startedAt on the monotonic clock, as all times here */
  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  /** The part of a heartbeat for statuses. */
  request(throttlers: readonly Coordinated[], now: number): Pick<HeartbeatRequest, 'status' | 'watch'> {
    const status = this.#watched ? this.#tell?.(throttlers, this.#startedAt, now) : undefined
    return {
      ...(status !== undefined && { status }),
      ...(now < this.#until && { watch: true as const }),
    }
  }

  heard({ watched, statuses }: HeartbeatReply, now: number): void {
    this.#watched = watched === true
    if (this.#watched && this.#tell === undefined && !this.#loading) void this.#load()
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

  /** Tries again with a later heartbeat if it fails. */
  async #load(): Promise<void> {
    this.#loading = true
    try {
      this.#tell = (await loadCode(() => import('../../inspect/status-text.ts'))).tellStatus
    } catch {
      // The process reports nothing until then.
    } finally {
      this.#loading = false
    }
  }
}
