import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mustRun, pnpm, run } from '@weir/tooling/run'
import { buildSite } from './build.ts'
import { ROOT } from './pages.ts'
import { forwardTo, nowhereOf, publishedOf } from './versions.ts'

/**
 * Writes the sites of what has been released, a folder for each version and a page that leads to the newest; before any release the site as it
 * is now.
 *
 * @param root of the repository whose tags are asked for
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

/** Each version is built by itself, from what was released. */
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
