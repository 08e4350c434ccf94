import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { publicPackages } from '@weir/tooling/workspace'
import type { Figure } from './figure.ts'

const CHANGESETS = fileURLToPath(new URL('../../../../.changeset', import.meta.url))

/** All packages carry the same version, so their changelogs are one page. */
export const changelog: Figure = {
  name: 'changelog',
  makes: ['changelog'],
  about: 'changes of the next version and of each release',
  make: async () => {
    const changelogs = publicPackages().map(({ directory }) => join(directory, 'CHANGELOG.md'))
    return { tables: { changelog: changes(unreleased(), changelogs.filter(existsSync).map(read)) } }
  },
}

/**
 * Merges the changelogs of packages. A change of several packages is listed once.
 *
 * @param next texts of changes that are not yet released
 */
export function changes(next: readonly string[], changelogs: readonly string[]): string {
  const versions = new Map<string, Set<string>>()
  for (const [, version = '', section = ''] of changelogs.flatMap((text) => [
    ...text.matchAll(/^## (.*)\n([\s\S]*?)(?=^## |(?![\s\S]))/gm),
  ])) {
    const listed = versions.get(version) ?? new Set()
    for (const [, change = ''] of section.matchAll(/^- (?:[0-9a-f]{7,}: )?(?!Updated dependencies)([\s\S]*?)(?=^- |^#|(?![\s\S]))/gm))
      listed.add(change.trim().replace(/^ {2}/gm, ''))
    versions.set(version, listed)
  }
  const sections = [...versions].map(([version, listed]) => [`## ${version}`, ...listed].join('\n\n'))
  return [...(next.length > 0 ? [['## Next version', ...next].join('\n\n')] : []), ...sections].join('\n\n')
}

function unreleased(): string[] {
  const files = readdirSync(CHANGESETS).filter((file) => file.endsWith('.md') && file !== 'README.md')
  return files.map((file) =>
    read(join(CHANGESETS, file))
      .replace(/^---\n[\s\S]*?^---\n/m, '')
      .trim(),
  )
}

function read(file: string): string {
  return readFileSync(file, 'utf8')
}
