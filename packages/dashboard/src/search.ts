import type { Throttler } from '@weir/core'
import { type AdapterSide, adapterOf } from '@weir/core/adapter'
import type { Found, TopKey, View } from './protocol.ts'

type Limiter = AdapterSide<string, never>['inspected']['limiters'][number]

/** Keys in an answer. */
const MOST = 50
/** Slots of this process's tables that one search visits, so that it takes a few milliseconds. */
const VISITED = 200_000

/** Keys that contain the text: those in the lists of all processes first, and then those in this process's tables. */
export function search(throttler: Throttler<string, never>, text: string, view: View | undefined): Found['matches'] {
  if (text === '') return []
  const found = new Map<string, TopKey>()
  const add = (one: TopKey): void => {
    const id = JSON.stringify([one.policy, one.key])
    if (found.size < MOST && !found.has(id)) found.set(id, one)
  }
  const { limiters, clock } = adapterOf(throttler).inspected
  const now = clock.monotonic()
  const addSlot = (limiter: Limiter, slot: number): void => {
    const { policy, meter } = limiter
    const limit = limiter.most(limiter.limitOf(slot))
    const units = meter.usedOf(slot, now)
    const debt = policy.algorithm.id.includes('bucket') ? Math.max(0, units - limit) : 0
    add({ policy: policy.name, key: limiter.keyOf(slot), used: units - debt, limit, debt })
  }
  for (const one of view?.top ?? []) if (one.key.includes(text)) add(one)
  for (const { policy, key } of [...(view?.limited ?? []), ...(view?.blocked ?? [])]) {
    if (!key.includes(text)) continue
    const limiter = limiters.find((one) => one.policy.name === policy)
    const slot = limiter?.table.find(key) ?? -1
    const capacity = limiter?.most(limiter.policy.limit) ?? view?.policies.find(({ name }) => name === policy)?.capacity ?? 0
    if (limiter === undefined || slot < 0) add({ policy, key, used: 0, limit: capacity, debt: 0 })
    else addSlot(limiter, slot)
  }
  let visited = 0
  for (const limiter of limiters) {
    const { keys, end } = limiter.table
    for (let slot = 0; slot < end && visited < VISITED && found.size < MOST; slot++, visited++) {
      if (keys[slot]?.includes(text) !== true || limiter.isShared(slot)) continue
      addSlot(limiter, slot)
    }
  }
  return [...found.values()]
}

/** Whether a policy counts exactly this key in this process, or a process lists it. */
export function isCounted(throttler: Throttler<string, never>, key: string, view: View | undefined): boolean {
  const { limiters } = adapterOf(throttler).inspected
  if (limiters.some(({ table }) => table.find(key) >= 0)) return true
  return view !== undefined && [view.top, view.limited, view.blocked].some((list) => list.some((one) => one.key === key))
}
