import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { images, ROOT } from './pages.ts'
import { HOME, type Staged } from './stage.ts'

/** Writes each page as Markdown beside its HTML, and a list of all pages, for programs that read them (llmstxt.org). */
export function writeTwins(directory: string, staged: readonly Staged[]): void {
  const pages = staged.filter(({ path }) => path !== HOME)
  for (const { path, text } of pages) {
    const to = join(directory, path)
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, text)
  }
  // VitePress renames pictures, so they are copied with their original names.
  for (const file of images()) cpSync(join(ROOT, file), join(directory, file.slice('docs/'.length)))
  writeFileSync(join(directory, 'llms.txt'), listOf(pages))
}

const GROUPS: readonly (readonly [string, string])[] = [
  ['', 'Begin'],
  ['start/', 'Quick starts'],
  ['guides/', 'Guides'],
  ['migration/', 'Migration'],
  ['recipes/', 'Recipes'],
  ['reference/', 'Reference'],
  ['packages/', 'Packages'],
  ['examples/', 'Examples'],
  ['errors/', 'Errors and warnings'],
  ['evidence/', 'Optional'],
  ['project/', 'Project'],
]

function listOf(pages: readonly Staged[]): string {
  const parts = GROUPS.map(([prefix, name]) => {
    const own = pages.filter(({ path }) => (prefix === '' ? !path.includes('/') : path.startsWith(prefix)))
    return `## ${name}\n\n${own.map(({ path, title, summary }) => `- [${title}](${path}): ${summary}`).join('\n')}\n`
  })
  return `# Weir\n\n> A distributed rate limiter for Node.js, with no I/O on the request path.\n\n${parts.join('\n')}`
}
