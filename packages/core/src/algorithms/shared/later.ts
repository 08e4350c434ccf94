import type { MakeShared, SharedForm } from './site.ts'

/** Meters whose code is loaded with the first policy that needs them: an application without such a policy need not carry it. */
export function later(load: () => Promise<MakeShared>): SharedForm {
  let make: MakeShared | undefined
  return (site, exchange) =>
    make?.(site, exchange) ??
    load().then((loaded) => {
      make = loaded
      return loaded
    })
}
