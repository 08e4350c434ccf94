import type { Mutation } from './mutant.ts'

/** Mutations of the code that applies a reset in all processes: parts are left out or wrong. */
export const RESETS: readonly Mutation[] = [
  {
    name: 'the store counts what nodes send of before a reset',
    file: 'hub/hub.ts',
    find: 'if (epoch > counted) return this.#ofBefore(',
    replace: 'if (epoch > counted && monotonic < 0) return this.#ofBefore(',
    also: {
      file: 'counting/synced-blocks.ts',
      find: 'if (epoch !== undefined) this.reset(key, epoch, now)\n    const slot',
      replace: 'const slot',
    },
    check: 'resets hold',
  },
  {
    name: 'the store keeps the counts of a key that is reset',
    file: 'hub/hub.ts',
    find: 'this.#countsOf(policy)?.reset(key, lastCellOf(epoch, policy.width))',
    replace: '',
    check: 'resets hold',
  },
  {
    name: 'the other nodes are not told',
    file: 'counting/synced-blocks.ts',
    find: 'if (epoch !== undefined) this.reset(key, epoch, now)\n    const slot',
    replace: 'const slot',
    check: 'resets hold',
  },
  {
    name: 'a reset leaves what the node itself holds',
    file: 'counting/gated-meter.ts',
    find: 'fields.fill(0, base, base + STRIDE)',
    replace: '',
    check: 'resets hold',
  },
  {
    name: 'a sliding window keeps its cells',
    file: 'counting/sliding-window/records.ts',
    find: 'this.#keys.delete(slot)',
    replace: '',
    check: 'resets hold',
  },
  {
    name: 'a refund of before a reset is paid',
    file: 'throttler/refunds.ts',
    find: 'if (limiter.resets.since(idOfKey(part.key), part.serial)) continue',
    replace: '',
    check: 'resets hold',
  },
  {
    name: 'counts go without the reset that they are of after',
    file: 'counting/synced-blocks.ts',
    find: ', ...(epoch !== undefined && { epoch })',
    replace: '',
    check: 'resets hold',
  },
  {
    name: 'a reset lifts blocks by hand',
    file: 'hub/blocks.ts',
    find: 'const end = this.manual(id, key) ? now + this.remaining(id, key, now) : now',
    replace: 'const end = now',
    check: 'resets hold',
  },
  {
    name: 'blocks by hand are told as cooldowns',
    file: 'hub/hub.ts',
    find: 'return { policyId, key, remaining: blocked, ...(manual && { manual }), ',
    replace: 'return { policyId, key, remaining: blocked, ',
    check: 'resets hold',
  },
  {
    name: 'usage does not ask the quiet nodes',
    file: 'hub/hub.ts',
    find: "if (entry.ask) this.#announce({ type: 'ask', policyId: policy.id, key })",
    replace: '',
    check: 'resets hold',
  },
]
