/**
 * The seed of every random test. It is fixed, so that a test does the same in each run. `FC_SEED=<number>` replays another one, and
 * `pnpm explore` sets it to a new one in each round.
 */
export const SEED = Number(process.env['FC_SEED'] ?? 1)

/**
 * Consecutive seeds from `SEED` on, for a test that runs once with each.
 *
 * @param {number} count
 * @returns {number[]}
 */
export function seeds(count) {
  return Array.from({ length: count }, (_, i) => SEED + i)
}
