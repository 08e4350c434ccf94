import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'vitepress'
import { buildPlayground } from '../playground/build.js'
import { ROOT } from './pages.ts'
import { relocate } from './relocatable.ts'
import { stage } from './stage.ts'
import { writeTwins } from './twins.ts'

export const SITE = join(ROOT, 'packages/website')
/** The default folder of the site. */
export const OUT = join(SITE, 'dist/site')

/** Built separately from VitePress. */
const PLAYGROUND = 'playground'

/**
 * Writes the whole site. The folder's previous content is removed.
 *
 * @param versions - other versions whose sites are beside it, newest first
 */
export async function buildSite(directory: string, versions: readonly string[] = []): Promise<void> {
  const staged = stage()
  rmSync(directory, { recursive: true, force: true })
  process.env['WEIR_SITE'] = directory
  process.env['WEIR_SITE_VERSIONS'] = versions.join()
  await build(SITE, { outDir: directory })
  await relocate(directory, [PLAYGROUND])
  writeTwins(directory, staged)
  await buildPlayground(join(directory, PLAYGROUND))
}
