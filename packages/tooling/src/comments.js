// Checks that comments begin with the thing that they describe, or with a verb. `comments.json` lists how many other openings each package
// may have, and these numbers only go down.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT, workspacePackages } from './workspace.js'

/** @import { Violation } from './boundaries.js' */

const LIST = join(ROOT, 'packages/tooling/comments.json')
const PROGRAM = 'packages/tooling/src/comments.js'
const FOLDERS = ['src', 'test', 'bin']
/** Openings that hide the noun: a reader has to get to the end of the sentence to find its subject. */
const VAGUE = /^(?:What|Who|Whoever|Of)\b/

/**
 * The comments of a source file that begin with a word of `VAGUE`. Lines of `//` in a row are one comment, and the paragraphs of a block
 * comment count separately.
 *
 * @param {string} source
 * @returns {{ line: number, text: string }[]}
 */
export function vagueComments(source) {
  /** @type {{ line: number, text: string }[]} */
  const found = []
  let inBlock = false
  /** Whether the next text begins a comment or a paragraph of one. */
  let begins = true
  for (const [at, line] of source.split('\n').entries()) {
    /** @param {string} text */
    const note = (text) => {
      if (begins && VAGUE.test(text)) found.push({ line: at + 1, text })
      begins = text === ''
    }
    if (inBlock) {
      const end = line.indexOf('*/')
      note((end < 0 ? line : line.slice(0, end)).replace(/^\s*\*?/, '').trim())
      inBlock = end < 0
      if (!inBlock) begins = true
      continue
    }
    const [, code = '', opening, text = ''] = /^(.*?(?:^|[\s{(]))(\/\/|\/\*\*?)(?=\s|$)(.*)$/.exec(line) ?? []
    if (opening === undefined) begins = true
    else if (opening === '//') {
      if (code.trim() !== '') begins = true
      note(text.trim())
      // The next line continues this comment, unless this one follows code.
      begins = code.trim() !== '' || text.trim() === ''
    } else {
      const end = text.indexOf('*/')
      begins = true
      note((end < 0 ? text : text.slice(0, end)).trim())
      inBlock = end < 0
      if (!inBlock) begins = true
    }
  }
  return found
}

/**
 * The vague comments of a package.
 *
 * @param {string} directory
 * @returns {{ file: string, line: number, text: string }[]}
 */
export function vagueCommentsOf(directory) {
  return FOLDERS.map((folder) => join(directory, folder))
    .filter((folder) => existsSync(folder))
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)))
    .filter((file) => /\.[cm]?[jt]sx?$/.test(file) && !file.includes('node_modules'))
    .sort()
    .flatMap((file) => vagueComments(readFileSync(file, 'utf8')).map((comment) => ({ file, ...comment })))
}

/**
 * Compares counts with the list of allowed ones. The list must be exact, so a count that went down must be written to it.
 *
 * @param {Readonly<Record<string, number>>} counts
 * @param {Readonly<Record<string, number>>} allowed
 * @returns {string[]} one message for each package that differs
 */
export function compareCounts(counts, allowed) {
  return [...new Set([...Object.keys(counts), ...Object.keys(allowed)])].sort().flatMap((name) => {
    const count = counts[name] ?? 0
    const most = allowed[name] ?? 0
    if (count === most) return []
    const found = `"${name}" has ${count} comments that begin with What, Who, Whoever or Of. The list allows ${most}.`
    if (count > most) return [`${found} Begin new ones with a noun or a verb. \`node ${PROGRAM} ${name}\` shows them all.`]
    return [`${found} \`node ${PROGRAM} --lower\` lowers it.`]
  })
}

/**
 * The list after counts went down. It raises none.
 *
 * @param {Readonly<Record<string, number>>} counts
 * @param {Readonly<Record<string, number>>} allowed
 * @returns {Record<string, number>}
 */
export function lowered(counts, allowed) {
  const least = Object.entries(allowed).map(([name, most]) => /** @type {const} */ ([name, Math.min(most, counts[name] ?? 0)]))
  return Object.fromEntries(least.filter(([, count]) => count > 0))
}

/**
 * The packages with another number of vague comments than the list allows.
 *
 * @returns {Violation[]}
 */
export function commentViolations() {
  return compareCounts(counted(), listed()).map((message) => ({ rule: 'comments', file: LIST, message }))
}

/** @returns {Record<string, number>} */
function listed() {
  return JSON.parse(readFileSync(LIST, 'utf8'))
}

/** @returns {Record<string, number>} */
function counted() {
  return Object.fromEntries(packages().map((directory) => [basename(directory), vagueCommentsOf(directory).length]))
}

/** @returns {string[]} */
function packages() {
  return workspacePackages()
    .map(({ directory }) => directory)
    .filter((directory) => directory.startsWith(join(ROOT, 'packages')))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2)
  if (names.includes('--lower')) writeFileSync(LIST, `${JSON.stringify(lowered(counted(), listed()), null, 2)}\n`)
  else {
    for (const directory of packages()) {
      if (names.length > 0 && !names.includes(basename(directory))) continue
      for (const { file, line, text } of vagueCommentsOf(directory)) console.log(`${file.slice(ROOT.length)}:${line}: ${text}`)
    }
  }
}
