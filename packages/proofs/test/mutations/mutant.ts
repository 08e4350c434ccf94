import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type BuildContext, context, type OutputFile, type Plugin } from 'esbuild'
import type * as Entry from './entry.ts'

/** A change of one place in the sources of `@weir/core`. */
export interface Mutation {
  /** The name of the part that is left out or wrong. */
  readonly name: string
  /** The file in `packages/core/src`. */
  readonly file: string
  /** The text to replace. It must occur exactly once. */
  readonly find: string
  readonly replace: string
  /** A second place of the same mutation. */
  readonly also?: { readonly file: string; readonly find: string; readonly replace: string }
  /** The check in `entry.ts` that fails because of it. */
  readonly check: Entry.CheckName
}

type Edit = Pick<Mutation, 'file' | 'find' | 'replace'>

const CORE = fileURLToPath(new URL('../../../core/src/', import.meta.url))
const ENTRY = fileURLToPath(new URL('./entry.ts', import.meta.url))

/** Returns the text with the change. @throws if the place is not found exactly once */
export function mutate(source: string, { file, find, replace }: Edit): string {
  const parts = source.split(find)
  if (parts.length !== 2) {
    throw new Error(`${JSON.stringify(find)} occurs ${parts.length - 1} times in ${file}; a mutation needs a text that occurs once.`)
  }
  return parts.join(replace)
}

/** The changes of the mutant that is being built. */
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

/** The bundler reads only changed files again, because most sources are the same as for the previous mutant. */
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

/** Loads the simulator with a core that has these changes, and its checks. The sources stay as they are. Only one call at a time. */
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
    // The simulator found a process that contradicts itself.
    return [String(error)]
  }
}

export function editsOf({ also, file, find, replace }: Mutation): readonly Edit[] {
  return [{ file, find, replace }, ...(also === undefined ? [] : [also])]
}
