import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mustRun, pnpm, run } from '@weir/tooling/run'
import { buildSite } from './build.ts'
import { ROOT } from './pages.ts'
import { forwardTo, nowhereOf, publishedOf } from './versions.ts'

/**
 * Writes the sites of all releases, with a folder for each version and a page that leads to the newest. Before the first release it writes
 * only the current site.
 *
 * @param root folder of the repository that has the tags
 */
export async function buildReleases(directory: string, root: string = ROOT): Promise<void> {
  const versions = publishedOf((await mustRun('git', ['tag', '--list'], { cwd: root })).split('\n'))
  const [newest] = versions
  if (newest === undefined) return buildSite(directory)
  rmSync(directory, { recursive: true, force: true })
  for (const version of versions) await buildRelease(root, directory, version, versions)
  writeFileSync(join(directory, 'index.html'), forwardTo(newest))
  writeFileSync(join(directory, '404.html'), nowhereOf(newest))
}

/** Builds a version from its tag, with its own code. */
async function buildRelease(root: string, directory: string, version: string, versions: readonly string[]): Promise<void> {
  const tree = mkdtempSync(join(tmpdir(), 'weir-site-'))
  try {
    await mustRun('git', ['worktree', 'add', '--force', '--detach', tree, `v${version}`], { cwd: root })
    await pnpm(['install', '--frozen-lockfile'], { cwd: tree })
    await pnpm(['site:build', '--out', join(directory, version), '--versions', versions.join()], { cwd: tree })
  } finally {
    await run('git', ['worktree', 'remove', '--force', tree], { cwd: root })
  }
}
