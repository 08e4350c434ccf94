import { input, report } from '../harness/child.ts'
import { timedAsync } from '../harness/measure.ts'

export interface ImportInput {
  readonly before: readonly string[]
  /** The modules, which are imported one after the other. */
  readonly modules: readonly string[]
}

/** The time of the imports, in milliseconds. */
export interface ImportResult {
  readonly wall: number
  readonly cpu: number
}

const { before, modules } = input<ImportInput>()
for (const name of before) await import(name)
// Garbage of the framework and the client must not count for the modules that come next.
globalThis.gc?.()
await new Promise((resolve) => setTimeout(resolve, 50))
const result: ImportResult = await timedAsync(async () => {
  for (const name of modules) await import(name)
})
report(result)
process.exit(0)
