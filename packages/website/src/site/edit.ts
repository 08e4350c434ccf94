import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import gitHost from 'hosted-git-info'
import { ROOT } from './pages.ts'

/** The repository that package.json names, if it names one. */
export function namedRepository(): string | undefined {
  const { repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { repository?: string | { url: string } }
  return typeof repository === 'object' ? repository.url : repository
}

/** The address that edits a file of the repository, with `:path` in place of the file's path. Undefined if the host isn't known. */
export function editPatternOf(repository: string): string | undefined {
  // The package's types lack this method.
  const host = gitHost.fromUrl(repository) as { edit(path: string): string | undefined } | undefined
  return host?.edit(':path')
}
