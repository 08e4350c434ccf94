import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'

/** @typedef {import('./boundaries.js').Violation} Violation */
/** @typedef {Record<string, string[]>} Rooms */

const RULE = 'rooms'
const CLASS = /^(?:export )?(?:abstract )?class (\w+)(?:<.*?>)?(?: extends (\w+))?/gm
/** A comparison with the name of a coordination. `decide/coordination.ts` defines how they differ, for all rooms above it. */
const COORDINATION = /(?:===|!==|\bcase)\s*['"](?:local|background|periodic|leased|central)['"]/
const IMPORT = /(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g

/**
 * Finds violations of a package's `rooms.json`, which lists its rooms (the folders of `src`) and the rooms from which each may import. A
 * room with rooms of its own also has such a list. Also finds classes that inherit from more than one other class of the package, and
 * comparisons of coordinations above the room `decide`. Files beside the rooms, such as `index.ts`, may import from all of them.
 *
 * @param {string} directory - the package
 * @returns {Violation[]} nothing for a package without such a list
 */
export function roomViolations(directory) {
  const src = join(directory, 'src')
  const folders = existsSync(src) ? readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory()) : []
  return [
    ...violationsOf(join(directory, 'rooms.json'), src),
    ...folders.flatMap(({ name }) => violationsOf(join(src, name, 'rooms.json'), join(src, name))),
  ]
}

/**
 * @param {string} list
 * @param {string} src - the folder that has the rooms
 * @returns {Violation[]}
 */
function violationsOf(list, src) {
  if (!existsSync(list)) return []
  /** @type {Rooms} */
  const rooms = JSON.parse(readFileSync(list, 'utf8'))
  const violations = circles(rooms).map((room) => ({ rule: RULE, file: list, message: `Arrows from room "${room}" lead back to it.` }))
  const used = new Set()
  /** @type {Map<string, { file: string, parent: string | undefined }>} */
  const classes = new Map()
  for (const entry of readdirSync(src, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.tsx?$/.test(entry.name)) continue
    const file = join(entry.parentPath, entry.name)
    const from = roomOf(src, file)
    if (from === undefined) continue
    const allowed = rooms[from]
    if (allowed === undefined) {
      violations.push({ rule: RULE, file, message: `Room "${from}" is not in rooms.json.` })
      continue
    }
    const code = readFileSync(file, 'utf8')
    if ('decide' in rooms && floorOf(rooms, from) > floorOf(rooms, 'decide') && COORDINATION.test(code)) {
      const message = `Room "${from}" compares coordinations. Use a function of decide/coordination.ts, or add one.`
      violations.push({ rule: RULE, file, message })
    }
    for (const [, name, parent] of code.matchAll(CLASS)) classes.set(/** @type {string} */ (name), { file, parent })
    for (const [, specifier] of code.matchAll(IMPORT)) {
      const to = roomOf(src, join(dirname(file), /** @type {string} */ (specifier)))
      if (to === from) continue
      used.add(`${from} ${to}`)
      if (to === undefined || !allowed.includes(to)) {
        violations.push({ rule: RULE, file, message: `Room "${from}" must not import from ${to === undefined ? 'the top' : `"${to}"`}.` })
      }
    }
  }
  for (const [name, { file, parent = '' }] of classes) {
    // A parent from outside the package, such as Error, doesn't count.
    const above = classes.get(parent)?.parent ?? ''
    if (classes.has(above)) {
      const message = `Class "${name}" extends "${parent}", which extends "${above}": inheritance is one deep at most.`
      violations.push({ rule: RULE, file, message })
    }
  }
  for (const [from, allowed] of Object.entries(rooms)) {
    for (const to of allowed) {
      if (!used.has(`${from} ${to}`)) violations.push({ rule: RULE, file: list, message: `No file of "${from}" imports from "${to}".` })
    }
  }
  return violations
}

/**
 * The number of floors of a house. Rooms on the ground floor import from no other room.
 *
 * @param {Rooms} rooms - without circles
 */
export function floorsOf(rooms) {
  return Math.max(0, ...Object.keys(rooms).map((room) => floorOf(rooms, room)))
}

/**
 * The floor of a room: one above the highest room from which it imports.
 *
 * @param {Readonly<Record<string, readonly string[]>>} rooms - without circles
 * @param {string} room
 * @returns {number}
 */
export function floorOf(rooms, room) {
  return 1 + Math.max(0, ...(rooms[room] ?? []).map((below) => floorOf(rooms, below)))
}

/**
 * @param {Rooms} rooms
 * @returns {string[]} rooms that can be reached from themselves
 */
function circles(rooms) {
  return Object.keys(rooms).filter((room) => {
    const seen = new Set()
    const open = [...(rooms[room] ?? [])]
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (at === room) return true
      if (seen.has(at)) continue
      seen.add(at)
      open.push(...(rooms[at] ?? []))
    }
    return false
  })
}

/**
 * @param {string} src
 * @param {string} file
 * @returns {string | undefined} undefined for a file beside the rooms
 */
function roomOf(src, file) {
  const parts = relative(src, file).split(sep)
  return parts.length > 1 ? parts[0] : undefined
}
