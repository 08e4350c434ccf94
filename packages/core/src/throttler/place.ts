import { inWorkers } from '../time/request-clock.ts'
import { type Stack, stack } from './stack.ts'

/** The place where a policy is created, as far as a stack shows it. */
export interface Place {
  /** For messages: the nearest caller outside Weir and `node_modules`, else the nearest one outside Weir. */
  readonly text: string
  /** Undefined if only frameworks call, such as a Fastify plugin that is loaded later. */
  readonly site: Site | undefined
}

interface Site {
  /** Without parts that differ between two evaluations of a module, such as `?v=2`. */
  readonly file: string
  /** Line and column. */
  readonly at: string
  /** A digest of the file's source. Undefined if the engine has none. */
  readonly source: unknown
  /** The callers from here to the top level of the module. */
  readonly calls: string
  /** The same value for everything that is made in one synchronous run. */
  readonly run: object
}

/** Frames are in `src` if source maps are applied. */
const OURS = /[\\/]@weir[\\/][\w-]+[\\/](?:dist|src)[\\/]|^\s*at new |node:internal/
const FOREIGN = /[\\/]node_modules[\\/]|\bnode:/

let running: object | undefined

/** The place in the application that calls Weir now. */
export function placeOfCall(): Place {
  return placeIn(stack())
}

/** The place in the application that called Weir with this stack. */
export function placeIn([shown, sites]: Stack): Place {
  const originals = shown.map(originalOf)
  // The adapters are beside this package, in a checkout too.
  const beside = [shown, originals].map(([own = '']) => /([^(\s]*[\\/])core[\\/](?:src|dist)[\\/]/.exec(own)?.[1]).find(Boolean)
  const isOurs = (frame: string): boolean =>
    OURS.test(frame) || (beside !== undefined && frame.includes(beside) && /[\\/](?:src|dist)[\\/]/.test(frame))
  // Bundlers may look for our own sources in a wrong folder.
  const frames = shown.map((frame, i) => (isOurs(frame) ? frame : (originals[i] as string)))
  const nearest = frames.findIndex((frame) => !isOurs(frame))
  const own = frames.findIndex((frame) => !isOurs(frame) && !FOREIGN.test(frame))
  const text = frames[own] ?? frames[nearest] ?? ''
  const site = own < 0 ? undefined : siteOf(frames.slice(own), frames[0] ?? '', sites[own]?.getScriptHash?.())
  return { text: text.trim().replace(/^at /, '') || 'an unknown place', site }
}

/**
 * Whether a policy created at one place is the same as an earlier one, created again: the module is evaluated another time, e.g. by a hot
 * reload, or in another bundle. If a file's source has changed, its lines may have moved.
 */
export function isMadeAgain(earlier: Site, later: Site): boolean {
  if (earlier.file !== later.file) return false
  if (earlier.source !== later.source) return true
  // Two calls of one helper in one run are two policies.
  return earlier.at === later.at && (earlier.calls === later.calls || earlier.run !== later.run)
}

function siteOf(frames: readonly string[], weir: string, source: unknown): Site | undefined {
  const [file, at] = positionOf(frames[0] ?? '')
  if (file === undefined || at === undefined || !/[\\/]/.test(file)) return undefined
  if (running === undefined) {
    running = {}
    void Promise.resolve().then(() => (running = undefined))
  }
  const end = frames.findIndex((frame) => /\bnode:/.test(frame))
  // Without file names: a process may have many policies.
  const calls = frames.slice(0, end < 0 ? undefined : end).map((frame) => positionOf(frame)[1])
  // If Weir is in the same bundle, the nearest caller is Weir itself.
  const bundled = positionOf(weir)[0] === file
  return { file: fileOf(file), at: bundled ? calls.join() : at, source, calls: calls.join(), run: running }
}

/**
 * The frame in the source that a bundle was made from, if Node.js has the bundle's source map. Development servers such as that of Next.js
 * load maps but don't apply them to stacks, and a hot reload evaluates a module in another file than before.
 */
function originalOf(frame: string): string {
  const [file, at] = positionOf(frame)
  // Workers have the function, but it throws.
  if (file === undefined || at === undefined || inWorkers()) return frame
  const [line, column] = at.split(':').map(Number) as [number, number]
  const map = globalThis.process?.getBuiltinModule?.('node:module')?.findSourceMap?.(file)
  const entry = map?.findEntry(line - 1, column - 1)
  if (entry === undefined || !('originalSource' in entry)) return frame
  return frame.replace(`${file}:${at}`, () => `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`)
}

/** The file of a frame, and its line and column there. */
function positionOf(frame: string): readonly (string | undefined)[] {
  return /^\s*at (?:async )?(?:.* \()?(.+?):(\d+:\d+)\)?$/.exec(frame)?.slice(1) ?? []
}

/** Bundlers write the layer of a module before its path: `webpack-internal:///(rsc)/./limits.ts`. */
function fileOf(path: string): string {
  return path
    .replace(/^file:\/\//, '')
    .replace(/[?#].*$/, '')
    .replace(/^(webpack-internal:\/\/\/)\([\w-]+\)\//, '$1')
}
