// Checks the words of texts per 1,000 words: in the documentation, the READMEs, the texts of .github, and the comments of each package.
// `node packages/tooling/src/words.js GROUP` shows the lines that contain them.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT, workspacePackages } from './workspace.js'

/** @import { Violation } from './boundaries.js' */

/**
 * A word or sign that is counted. The bounds are per 1,000 words.
 *
 * @typedef {{ name: string, found: RegExp, most?: number, least?: number, only?: RegExp }} Goal
 */

/**
 * Names that contain a counted word and that others chose. They are not counted.
 *
 * @type {readonly { found: RegExp, reason: string }[]}
 */
export const EXCEPTIONS = [
  { found: /\bASK, MOVED\b/gu, reason: 'replies of Redis Cluster' },
  { found: /\bHELD\b/gu, reason: 'a constant in a layout of memory' },
]

const PROGRAM = 'packages/tooling/src/words.js'

/** @type {readonly Goal[]} */
export const GOALS = [
  { name: 'what', found: /\bwhat\b/giu, most: 3 },
  {
    name: 'tell, say, ask, hear',
    found: /\b(?:tells?|telling|told|says?|saying|said|asks?|asking|asked|hears?|hearing|heard)\b/giu,
    most: 0.5,
  },
  { name: 'nobody, somebody, whoever, whom', found: /\b(?:nobody|somebody|whoever|whom)\b/giu, most: 0 },
  { name: 'hold', found: /\b(?:holds?|held|holding)\b/giu, most: 0.5 },
  { name: 'those that, one that', found: /\b(?:those that|those who|one that)\b/giu, most: 0.3 },
  { name: 'semicolons', found: /;(?=\s|$)/gmu, most: 4 },
  // Comments describe code, so they address no reader.
  { name: 'you', found: /\b(?:you|your|yours|yourself)\b/giu, least: 8, only: /^(?:README|start|guides|recipes|migration)$/ },
  { name: 'if', found: /\bif\b/giu, least: 4, only: /^(?:README|start|guides|migration)$/ },
]

/**
 * The prose of a Markdown page: without code, links' targets and marks of generated tables.
 *
 * @param {string} markdown
 */
export function proseOf(markdown) {
  return markdown
    .replace(/^(```+)[^\n]*\n[\s\S]*?^\1$/gmu, '')
    .replace(/<!--[\s\S]*?-->|<[^>\n]+>/gu, '')
    .replace(/`[^`\n]+`/gu, 'code')
    .replace(/\]\([^)\n]*\)/gu, ']')
    .replace(/https?:\S+/gu, '')
    .replace(/^\|[-:| ]+\|$/gmu, '')
}

/**
 * The text of all comments of a source file. Code in backticks is left out.
 *
 * @param {string} source
 */
export function commentsOf(source) {
  /** @type {string[]} */
  const texts = []
  // A string or a regular expression may contain the signs of a comment, so comments begin a line or follow a space.
  for (const [, block, line] of source.matchAll(/(?:^|\s)(?:\/\*\*?([\s\S]*?)\*\/|\/\/ ([^\n]*))/gu))
    if (!/biome-ignore|@ts-|@import|@type\b|@typedef/.test(block ?? line ?? ''))
      texts.push((block ?? line ?? '').replace(/^\s*\* ?/gmu, '').replace(/@(?:param|property) (?:\{[^\n]*\} )?\S+/gu, ''))
  return proseOf(texts.join('\n')).replace(/\{@?\w+[^}\n]*\}|@\w+/gu, '')
}

/** @param {string} text */
function withoutExceptions(text) {
  return EXCEPTIONS.reduce((rest, { found }) => rest.replace(found, ''), text)
}

/**
 * @param {string} text
 * @param {readonly Goal[]} goals
 */
export function counted(text, goals = GOALS) {
  const words = text.match(/[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu)?.length ?? 0
  const own = withoutExceptions(text)
  return { words, counts: goals.map(({ name, found }) => ({ name, count: own.match(found)?.length ?? 0 })) }
}

/**
 * The goals that a group of texts misses.
 *
 * @param {string} group
 * @param {string} text
 * @returns {string[]}
 */
export function missed(group, text) {
  const goals = GOALS.filter(({ only }) => only === undefined || only.test(group))
  const { words, counts } = counted(text, goals)
  return counts.flatMap(({ name, count }, at) => {
    const { most = Number.POSITIVE_INFINITY, least = 0 } = /** @type {Goal} */ (goals[at])
    const part = (1_000 * count) / Math.max(1, words)
    if (part <= most && part >= least) return []
    const bound = part > most ? `at most ${most}. \`node ${PROGRAM} ${group}\` shows them.` : `at least ${least}.`
    return [`${words} words contain "${name}" ${count} times. Per 1,000 words that is ${part.toFixed(1)}, but should be ${bound}`]
  })
}

/**
 * All texts by their group: a folder of the documentation, the READMEs, or the comments of a package.
 *
 * @returns {Map<string, { file: string, text: string }[]>}
 */
export function texts() {
  /** @type {Map<string, { file: string, text: string }[]>} */
  const groups = new Map()
  /**
   * @param {string} group
   * @param {string} file
   * @param {(source: string) => string} textOf
   */
  const add = (group, file, textOf) =>
    groups.set(group, [...(groups.get(group) ?? []), { file: relative(ROOT, file), text: textOf(readFileSync(file, 'utf8')) }])

  const docs = join(ROOT, 'docs')
  for (const file of filesOf(docs, /\.md$/)) {
    const [folder = '', ...rest] = relative(docs, file).split(sep)
    add(rest.length > 0 ? folder : 'docs', file, proseOf)
  }
  add('README', join(ROOT, 'README.md'), proseOf)
  for (const file of filesOf(join(ROOT, '.github'), /\.md$/)) add('.github', file, proseOf)
  add('examples', join(ROOT, 'examples/README.md'), proseOf)
  for (const { directory } of workspacePackages()) {
    const isExample = directory.startsWith(join(ROOT, 'examples'))
    const readme = join(directory, 'README.md')
    for (const file of [...(existsSync(readme) ? [readme] : []), ...filesOf(join(directory, 'src'), /\.md$/)])
      add(isExample ? 'examples' : 'packages', file, proseOf)
    for (const folder of ['src', 'test', 'bin'])
      for (const file of filesOf(join(directory, folder), /\.[cm]?[jt]sx?$/))
        if (!file.includes('.generated.')) add(isExample ? 'examples' : basename(directory), file, commentsOf)
  }
  return groups
}

/**
 * @param {string} folder
 * @param {RegExp} ending
 * @returns {string[]}
 */
function filesOf(folder, ending) {
  if (!existsSync(folder)) return []
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return files
    .filter((file) => ending.test(file) && !file.includes('node_modules'))
    .sort()
    .map((file) => join(folder, file))
}

/** @returns {Violation[]} */
export function wordViolations() {
  return [...texts()].flatMap(([group, files]) =>
    missed(group, files.map(({ text }) => text).join('\n')).map((message) => ({ rule: 'words', file: group, message })),
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2)
  if (names.length === 0) for (const { file, message } of wordViolations()) console.log(`${file}: ${message}`)
  for (const [group, files] of texts()) {
    if (!names.includes(group)) continue
    for (const { name, found, most } of GOALS)
      for (const { file, text } of most === undefined ? [] : files)
        for (const line of text.split('\n'))
          if (withoutExceptions(line).search(found) >= 0) console.log(`${file}: ${name}: ${line.trim().slice(0, 140)}`)
  }
}
