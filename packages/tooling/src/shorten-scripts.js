import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { shortenLua } from './lua.js'

/** A folder within the package, so that Node.js finds the package's dependencies. */
const ROOM = 'dist/scripts'

/**
 * Shortens the Lua scripts of the package in the current directory. Its modules build them from pieces, and each becomes one text.
 *
 * @param {string} folder of these modules
 * @returns {Promise<Map<string, string>>} the new source of modules with scripts, by their path, without the functions that build scripts
 */
export async function shortScripts(folder) {
  if (!existsSync(folder)) return new Map()
  const files = readdirSync(folder)
  const bundle = await rolldown({
    input: files.map((file) => join(folder, file)),
    platform: 'node',
    external: (id) => !/^[./]/.test(id),
  })
  await bundle.write({ dir: ROOM })
  await bundle.close()
  /** @type {[file: string, constants: [name: string, value: unknown][]][]} */
  const made = []
  for (const file of files) {
    const all = Object.entries(await import(pathToFileURL(resolve(ROOM, file.replace(/ts$/, 'js'))).href))
    const constants = all.filter(([, value]) => typeof value === 'string' || typeof value === 'number')
    if (constants.length > 0) made.push([join(folder, file), constants])
  }
  rmSync(ROOM, { recursive: true })
  const texts = made.flatMap(([, constants]) => constants.flatMap(([, value]) => (typeof value === 'string' ? [value] : [])))
  const short = new Map(shortenLua(texts).map((text, at) => [texts[at], text]))
  return new Map(
    made.map(([file, constants]) => [
      file,
      constants
        .map(([name, value]) => `export const ${name} = ${JSON.stringify(typeof value === 'string' ? short.get(value) : value)}\n`)
        .join(''),
    ]),
  )
}
