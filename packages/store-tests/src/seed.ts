/** Of random tests: printed by the reporter of fast-check when one fails, and replayed by `FC_SEED=<seed>`. */
export const SEED: number = Number(process.env['FC_SEED'] ?? Date.now() % 0x7fffffff)
