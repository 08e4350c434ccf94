import type { MakeShared, SharedForm, StoreExchange } from './site.ts'

/**
 * Makes meters whose code is loaded with the first policy that needs them, so that other applications don't carry it. A failed import
 * leaves nothing behind, so the next one starts again.
 *
 * @param load loads the function that makes them, for algorithms of this shape
 */
export function later<Shape = void>(
  load: (exchange: StoreExchange) => Promise<(shape: Shape) => MakeShared>,
): (shape: Shape) => SharedForm {
  let loaded: ((shape: Shape) => MakeShared) | undefined
  return (shape) => (site, exchange) =>
    loaded?.(shape)(site, exchange) ??
    (async () => {
      loaded = await load(exchange)
      return loaded(shape)
    })
}
