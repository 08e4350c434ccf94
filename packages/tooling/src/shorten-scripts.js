import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { shortenLua } from './lua.js'

/**
 * Puts the Lua scripts of a built package, which are put together from pieces in modules of `scripts/`, in the place of these
 * modules: each as one text, shortened. Modules of which others use more than texts and numbers stay as they are.
 *
 * @param {string} dist where `esm/` and `cjs/` are
 */
export async function shortenScripts(dist) {
  const folder = join(dist, 'esm/scripts')
  if (!existsSync(folder)) return
  const files = readdirSync(folder).filter((name) => name.endsWith('.js'))
  const uses = usesOf(join(dist, 'esm'))
  /** @type {Map<string, [name: string, value: unknown][]>} */
  const kept = new Map()
  for (const file of files) {
    /** @type {Record<string, unknown>} */
    const made = await import(pathToFileURL(join(folder, file)).href)
    const names = uses.get(file) ?? new Set()
    kept.set(
      file,
      Object.entries(made).filter(([name]) => names.has(name) || names.has(ALL)),
    )
  }
  for (const file of files) if (!(kept.get(file) ?? []).every(([, value]) => isText(value))) leave(file, folder, kept)
  const scripts = [...kept.values()].flat().flatMap(([, value]) => (typeof value === 'string' ? [value] : []))
  const short = new Map(shortenLua(scripts).map((script, at) => [scripts[at], script]))
  for (const [file, constants] of kept) {
    for (const form of ['esm', 'cjs']) {
      const path = join(dist, form, 'scripts', file)
      const texts = constants.map(([name, value]) => /** @type {const} */ ([name, typeof value === 'string' ? short.get(value) : value]))
      if (texts.length === 0) for (const one of [path, path.replace(/\.js$/, '.d.ts')]) rmSync(one)
      else writeFileSync(path, moduleOf(texts, form === 'esm'))
    }
  }
}

/** Stands for all names of a module. */
const ALL = '*'

/** @param {unknown} value */
function isText(value) {
  return typeof value === 'string' || typeof value === 'number'
}

/**
 * Leaves a module as it is, and what it imports.
 *
 * @param {string} file
 * @param {string} folder
 * @param {Map<string, unknown>} kept
 */
function leave(file, folder, kept) {
  if (!kept.delete(file)) return
  for (const [, next = ''] of readFileSync(join(folder, file), 'utf8').matchAll(/from '\.\/([^']*)'/g)) leave(next, folder, kept)
}

/**
 * What modules beside `scripts/` import from each of its modules; all names where it is loaded later.
 *
 * @param {string} folder
 * @returns {Map<string, Set<string>>}
 */
function usesOf(folder) {
  /** @type {Map<string, Set<string>>} */
  const uses = new Map()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js') || file.startsWith('scripts')) continue
    const text = readFileSync(join(folder, file), 'utf8')
    for (const [, list = ALL, module = ''] of text.matchAll(
      /(?:import (?:\{([^}]*)\}|\* as \w+) from |import\()'[^']*\/scripts\/([^']*)'/g,
    )) {
      const names = uses.get(module) ?? new Set()
      uses.set(module, names)
      for (const name of list.split(',')) names.add(name.trim().split(' ')[0] ?? '')
    }
  }
  return uses
}

/**
 * @param {readonly (readonly [name: string, value: unknown])[]} constants
 * @param {boolean} esm
 */
function moduleOf(constants, esm) {
  const lines = constants.map(([name, value]) => `${esm ? 'export const ' : 'exports.'}${name} = ${JSON.stringify(value)};\n`)
  return esm ? lines.join('') : `"use strict";\nObject.defineProperty(exports, "__esModule", { value: true });\n${lines.join('')}`
}
