/** As many frames as are between a user's line and this one, plus some for frameworks. */
const FRAMES = 50

/** A frame in V8 and similar engines. */
interface CallSite {
  getScriptHash?(): unknown
}

/** The frames of a call, as text and as the engine has them. */
export type Stack = readonly [frames: readonly string[], sites: readonly CallSite[]]

/** The stack of this call. */
export function stack(): Stack {
  const given = { limit: Error.stackTraceLimit, prepare: Error.prepareStackTrace }
  try {
    Error.stackTraceLimit = FRAMES
    const frames = (new Error().stack ?? '').split('\n').slice(2)
    // Source maps are applied to the text only.
    Error.prepareStackTrace = (_error, sites) => sites
    const sites: unknown = new Error().stack
    return [frames, Array.isArray(sites) ? sites.slice(1) : []]
  } catch {
    // A program may have frozen Error.
    return [[], []]
  } finally {
    try {
      Error.stackTraceLimit = given.limit
      Error.prepareStackTrace = given.prepare
    } catch {}
  }
}
