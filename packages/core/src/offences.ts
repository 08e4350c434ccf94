import type { CooldownGrowth } from './store.ts'

interface Record {
  level: number
  /** When it is forgotten, on the monotonic clock. */
  until: number
}

/** How often keys were blocked lately, for cooldowns that grow. */
export class Offences {
  readonly #records = new Map<string, Record>()

  /** The cooldown of a new block, in milliseconds: `base · factor^n`, at most `max`, after n blocks that are remembered. */
  next(id: string, base: number, growth: CooldownGrowth, now: number): number {
    const known = this.#records.get(id)
    const level = known !== undefined && known.until > now ? known.level : 0
    const cooldown = Math.min(Math.max(base, growth.max), base * growth.factor ** level)
    this.#records.set(id, { level: level + 1, until: now + cooldown + growth.memory })
    return cooldown
  }

  /** Forgets what is over. */
  sweep(now: number): void {
    for (const [id, { until }] of this.#records) if (until <= now) this.#records.delete(id)
  }

  clear(): void {
    this.#records.clear()
  }

  get size(): number {
    return this.#records.size
  }
}
