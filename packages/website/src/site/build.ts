import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'vitepress'
import { buildPlayground } from '../playground/build.js'
import { ROOT } from './pages.ts'
import { CARD, CARD_FILE } from './preview.ts'
import { relocate } from './relocatable.ts'
import { stage } from './stage.ts'
import { writeTwins } from './twins.ts'

export const SITE = join(ROOT, 'packages/website')
/** The default folder of the site. */
export const OUT = join(SITE, 'dist/site')

/** Built separately from VitePress. */
const PLAYGROUND = 'playground'

/** Facts about the place of the site, which the repository doesn't contain. */
export interface SiteOptions {
  /** Other versions whose sites are beside it, newest first. */
  readonly versions?: readonly string[]
  /** Absolute address of the site's top, ending with `/`. Without it there is no sitemap, and link previews have no picture. */
  readonly address?: string | undefined
  /** Repository with the pages' files. By default `repository` of package.json. Without it pages have no link to edit them. */
  readonly repository?: string | undefined
}

/** Writes the whole site. The folder's previous content is removed. */
export async function buildSite(directory: string, { versions = [], address = '', repository = '' }: SiteOptions = {}): Promise<void> {
  const staged = stage()
  rmSync(directory, { recursive: true, force: true })
  process.env['WEIR_SITE'] = directory
  process.env['WEIR_SITE_VERSIONS'] = versions.join()
  process.env['WEIR_SITE_ADDRESS'] = address
  process.env['WEIR_SITE_REPOSITORY'] = repository
  await build(SITE, { outDir: directory })
  await relocate(directory, [PLAYGROUND])
  writeTwins(directory, staged)
  cpSync(CARD_FILE, join(directory, CARD))
  await buildPlayground(join(directory, PLAYGROUND))
}
