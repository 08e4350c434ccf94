import { mkdirSync } from 'node:fs'
import { pnpm } from './run.js'
import { publicPackages, ROOT } from './workspace.js'

/** @typedef {import('./workspace.js').Package & { tarball: string, files: string[] }} Packed */

/**
 * Builds the public packages and packs each as it would be published.
 *
 * @param {string} destination a folder for the tarballs
 * @returns {Promise<Packed[]>}
 */
export async function packPublicPackages(destination) {
  mkdirSync(destination, { recursive: true })
  const env = { ...process.env, TURBO_TELEMETRY_DISABLED: '1' }
  // Builds only these packages and their dependencies, because builds of the others may be in use.
  const filters = publicPackages().map(({ manifest }) => `--filter=${manifest.name}`)
  await pnpm(['exec', 'turbo', 'run', 'build', ...filters], { cwd: ROOT, env })
  return Promise.all(
    publicPackages().map(async (found) => {
      const report = JSON.parse(await pnpm(['pack', '--json', '--pack-destination', destination], { cwd: found.directory }))
      return { ...found, tarball: report.filename, files: report.files.map((/** @type {{ path: string }} */ file) => file.path) }
    }),
  )
}
