import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type BuildContext, context, type OutputFile, type Plugin } from 'esbuild'
import type * as Entry from './entry.ts'

/** A change of one place in the sources of `@weir/core`. */
export interface Mutation {
  /** The part that is switched off or wrong. */
  readonly name: string
  /** In `packages/core/src`. */
  readonly file: string
  /** Must be found exactly once. */
  readonly find: string
  readonly replace: string
  /** A further place of the same mutation. */
  readonly also?: { readonly file: string; readonly find: string; readonly replace: string }
  /** The check of `checks.ts` that fails because of it. */
  readonly check: Entry.CheckName
}

type Edit = Pick<Mutation, 'file' | 'find' | 'replace'>

const CORE = fileURLToPath(new URL('../../../core/src/', import.meta.url))
const ENTRY = fileURLToPath(new URL('./entry.ts', import.meta.url))

/** The text with the change. @throws when the place is not found exactly once */
export function mutate(source: string, { file, find, replace }: Edit): string {
  const parts = source.split(find)
  if (parts.length !== 2) {
    throw new Error(`${JSON.stringify(find)} occurs ${parts.length - 1} times in ${file}; a mutation needs a text that occurs once.`)
  }
  return parts.join(replace)
}

/** The changes of the mutant that is being made. */
let edits: readonly Edit[] = []

const mutating: Plugin = {
  name: 'mutating',
  setup: (builder) => {
    builder.onLoad({ filter: /core.src.+\.ts$/ }, ({ path }) => {
      const mine = edits.filter(({ file }) => path === join(CORE, file.split('/').join(sep)))
      if (mine.length === 0) return undefined
      return { contents: mine.reduce(mutate, readFileSync(path, 'utf8')), loader: 'ts' }
    })
  },
}

/** Reads again only what has changed: most of the sources are those of the mutant before. */
let bundling: Promise<BuildContext<{ write: false }>> | undefined

async function bundle(): Promise<string> {
  bundling ??= context({
    entryPoints: [ENTRY],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['@weir/source'],
    plugins: [mutating],
    logLevel: 'silent',
  })
  const { outputFiles } = await (await bundling).rebuild()
  return (outputFiles[0] as OutputFile).text
}

/** The simulator with a core that has these changes, and the checks to put it to. The sources stay as they are. One at a time. */
export async function loadMutant(changes: readonly Edit[]): Promise<typeof Entry> {
  for (const edit of changes) mutate(readFileSync(join(CORE, edit.file), 'utf8'), edit)
  edits = changes
  const directory = mkdtempSync(join(tmpdir(), 'weir-mutant-'))
  try {
    const file = join(directory, 'mutant.mjs')
    writeFileSync(file, await bundle())
    return (await import(/* @vite-ignore */ pathToFileURL(file).href)) as typeof Entry
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

let unchanged: Promise<typeof Entry> | undefined

/** The faults that a check finds in a core with these changes. */
export async function findingsOf(changes: readonly Edit[], check: Entry.CheckName): Promise<readonly string[]> {
  const { checks } = await (changes.length > 0 ? loadMutant(changes) : (unchanged ??= loadMutant(changes)))
  try {
    return await checks[check]()
  } catch (error) {
    // The simulator found a node that contradicts itself.
    return [String(error)]
  }
}

export function editsOf({ also, file, find, replace }: Mutation): readonly Edit[] {
  return [{ file, find, replace }, ...(also === undefined ? [] : [also])]
}
