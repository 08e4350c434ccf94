import type { HeartbeatReply, HeartbeatRequest, StatusReport } from '../../store/contract.ts'
import type { Coordinated } from '../../throttler/coordinator.ts'
import { loadCode } from '../../time/load-code.ts'

/** For so long after it was last asked for, a view of the cluster is kept up to date, in milliseconds. */
const WATCH_FOR = 10_000

/** Makes a status; see `inspect/status-text.ts`. */
type Tell = (throttlers: readonly Coordinated[], startedAt: number, now: number) => string

/**
 * Exchanges statuses between processes through heartbeats. A process that shows the cluster asks for the others' statuses, and the others
 * report only while one asks. Unwatched it costs nothing; the code that makes a status is loaded only then, too.
 */
export class Watch {
  readonly #startedAt: number
  #until = Number.NEGATIVE_INFINITY
  #watched = false
  #tell: Tell | undefined
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
    if (this.#watched && this.#tell === undefined) this.#load()
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

  #load(): void {
    loadCode(() => import('../../inspect/status-text.ts')).then(
      ({ tellStatus }) => {
        this.#tell = tellStatus
      },
      () => {
        // The next heartbeat tries again.
      },
    )
  }
}
