import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mustRun, pnpm, run } from '@weir/tooling/run'
import { buildSite, type SiteOptions } from './build.ts'
import { ROOT } from './pages.ts'
import { forwardTo, nowhereOf, publishedOf } from './versions.ts'

/**
 * Writes the sites of all releases, with a folder for each version and a page that leads to the newest. Before the first release it writes
 * only the current site.
 *
 * @param options for each site. `address` is of the page above all versions. Only the newest site gets it, so that search engines find
 * each page once
 * @param root folder of the repository that has the tags
 */
export async function buildReleases(
  directory: string,
  { address, repository }: Omit<SiteOptions, 'versions'> = {},
  root: string = ROOT,
): Promise<void> {
  const versions = publishedOf((await mustRun('git', ['tag', '--list'], { cwd: root })).split('\n'))
  const [newest] = versions
  if (newest === undefined) return buildSite(directory, { address, repository })
  rmSync(directory, { recursive: true, force: true })
  for (const version of versions) {
    const own = version === newest && address !== undefined ? `${address}${version}/` : undefined
    await buildRelease(root, directory, version, { versions, address: own, repository })
  }
  writeFileSync(join(directory, 'index.html'), forwardTo(newest))
  writeFileSync(join(directory, '404.html'), nowhereOf(newest))
}

/** Builds a version from its tag, with its own code. */
async function buildRelease(root: string, directory: string, version: string, options: SiteOptions): Promise<void> {
  const tree = mkdtempSync(join(tmpdir(), 'weir-site-'))
  try {
    await mustRun('git', ['worktree', 'add', '--force', '--detach', tree, `v${version}`], { cwd: root })
    await pnpm(['install', '--frozen-lockfile'], { cwd: tree })
    const flags = Object.entries(options).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]))
    await pnpm(['site:build', '--out', join(directory, version), ...flags], { cwd: tree })
  } finally {
    await run('git', ['worktree', 'remove', '--force', tree], { cwd: root })
  }
}
