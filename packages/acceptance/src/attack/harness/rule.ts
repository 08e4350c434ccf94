/** The ways to count that attacks try. */
export const KINDS_OF_RULE = ['fixed', 'sliding', 'sliding counter', 'spans', 'cooldown'] as const
export type KindOfRule = (typeof KINDS_OF_RULE)[number]

/**
 * The options of a policy that counts in one of these ways.
 *
 * @param shared whether there is a store
 */
export async function ruleOf(kind: string, shared = true): Promise<object> {
  const { slidingCounter, slidingWindow } = await import('@weir/core')
  const coordination = shared ? 'periodic' : 'local'
  if (kind === 'sliding') return { algorithm: slidingWindow() }
  if (kind === 'sliding counter') return { algorithm: slidingCounter(), coordination }
  if (kind === 'spans') return { coordination }
  return kind === 'cooldown' ? { cooldown: '1m' } : {}
}
