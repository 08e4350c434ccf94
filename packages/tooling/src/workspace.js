import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The top of the repository. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The private condition in `exports` under which our packages resolve to their sources. */
export const SOURCE_CONDITION = '@weir/source'

/** @typedef {{ name: string, version: string, private?: boolean, scripts?: Record<string, string>, exports?: unknown, peerDependencies?: Record<string, string>, dependencies?: Record<string, string>, devDependencies?: Record<string, string> }} Manifest */
/** @typedef {{ directory: string, manifest: Manifest }} Package */

/**
 * The packages and examples of this repository, by folder name.
 *
 * @returns {Package[]}
 */
export function workspacePackages() {
  /** @type {Package[]} */
  const found = []
  for (const room of ['packages', 'examples']) {
    if (!existsSync(join(ROOT, room))) continue
    for (const name of readdirSync(join(ROOT, room)).sort()) {
      const directory = join(ROOT, room, name)
      const manifest = join(directory, 'package.json')
      if (existsSync(manifest)) found.push({ directory, manifest: JSON.parse(readFileSync(manifest, 'utf8')) })
    }
  }
  return found
}

/** @returns {Package[]} */
export function publicPackages() {
  return workspacePackages().filter(({ manifest }) => manifest.private !== true)
}

/**
 * The entries of the public packages: the name to import, and the source file.
 *
 * @returns {ReadonlyMap<string, string>}
 */
export function sourceEntries() {
  /** @type {Map<string, string>} */
  const found = new Map()
  for (const { directory, manifest } of publicPackages()) {
    const targets = /** @type {Record<string, string | Record<string, string>>} */ (manifest.exports)
    for (const [path, target] of Object.entries(targets)) {
      const source = typeof target === 'object' ? target[SOURCE_CONDITION] : undefined
      if (source !== undefined) found.set(`${manifest.name}${path.slice(1)}`, join(directory, source))
    }
  }
  return found
}
