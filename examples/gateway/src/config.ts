import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { createThrottler, WeirError } from '@weir/core'
import { type Document, isMap, isNode, isPair, isSeq, LineCounter, parseDocument } from 'yaml'
import type { z } from 'zod'
import { ConfigError } from './config-error.ts'
import { toPolicy } from './policies.ts'
import { type Config, schema } from './schema.ts'

type Path = readonly PropertyKey[]

/**
 * Reads and checks a configuration file.
 *
 * @throws ConfigError with the file's name, the line and the allowed values
 */
export function readConfig(file: string): Config {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new ConfigError(file, undefined, `cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`)
  }
  return parseConfig(text, file)
}

/** Checks the text of a configuration file. `file` is its name in messages. */
export function parseConfig(text: string, file: string): Config {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const [broken] = document.errors
  if (broken !== undefined) throw new ConfigError(file, lines.linePos(broken.pos[0]).line, `it is no YAML: ${broken.message}`)
  const lineOf = (path: Path): number | undefined => {
    const offset = offsetOf(document, path)
    return offset === undefined ? undefined : lines.linePos(offset).line
  }
  const parsed = schema.safeParse(document.toJS())
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const { path, message } = explain(issue as z.core.$ZodIssue, document)
    throw new ConfigError(file, lineOf(path), message)
  }
  checkLimits(parsed.data, file, lineOf)
  return parsed.data
}

/**
 * The number of processes to start, or undefined if this process serves alone.
 *
 * @throws ConfigError if several processes have no store to share limits
 */
export function processesOf({ store, processes }: Config, file: string): number | undefined {
  if (store === 'ipc') return processes ?? availableParallelism()
  if (processes === undefined || processes === 1) return undefined
  if (store === undefined)
    throw new ConfigError(file, undefined, `"processes": ${processes} processes need a store to share limits: ipc, or a server`)
  return processes
}

/** The path and message of a schema error. The path of an unknown key includes the key, so that the message names its line. */
function explain(issue: z.core.$ZodIssue, document: Document): { path: Path; message: string } {
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys
    return { path: [...issue.path, key], message: `"${nameOf([...issue.path, key])}" is unknown; ${allowedAt(issue.path)}` }
  }
  const missing = issue.path.length > 0 && !document.hasIn(issue.path)
  return { path: issue.path, message: `"${nameOf(issue.path)}"${missing ? ' is missing:' : ':'} ${issue.message}` }
}

function allowedAt(path: Path): string {
  const shape =
    path[0] === 'limits' && path.length === 2
      ? schema.shape.limits.element
      : path[0] === 'routes'
        ? schema.shape.routes.element
        : path[0] === 'listen'
          ? schema.shape.listen
          : schema
  return `allowed here: ${Object.keys(shape.shape).join(', ')}`
}

/** Checks that the names of limits are unique. Weir itself checks their numbers, so that only one set of rules exists. */
function checkLimits({ limits }: Config, file: string, lineOf: (path: Path) => number | undefined): void {
  for (const [index, limit] of limits.entries()) {
    const twin = limits.findIndex(({ name }) => name === limit.name)
    if (twin !== index)
      throw new ConfigError(
        file,
        lineOf(['limits', index, 'name']),
        `"limits[${index}].name": there is another limit ${JSON.stringify(limit.name)} in line ${lineOf(['limits', twin, 'name'])}`,
      )
    try {
      createThrottler({ policies: [toPolicy(limit)] })
    } catch (error) {
      if (!(error instanceof WeirError)) throw error
      const option = /[oO]ption "(?:[^"]*\.)?(\w+)"/.exec(error.message)?.[1]
      const path: Path = option !== undefined && option in limit ? ['limits', index, option] : ['limits', index]
      throw new ConfigError(file, lineOf(path), `"${nameOf(path)}": ${error.message}`)
    }
  }
}

/** The name of an option in messages, e.g. `limits[1].interval`. */
function nameOf(path: Path): string {
  const name = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
  return name.replace(/^\./, '') || 'the file'
}

/** The offset of a value, or of its key if it has one. For a missing value, the offset of its parent. */
function offsetOf(document: Document, path: Path): number | undefined {
  let node: unknown = document.contents
  let offset = isNode(node) ? node.range?.[0] : 0
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isPair(item) && String(item.key) === String(part))
      if (pair === undefined) return offset
      offset = (isNode(pair.key) ? pair.key.range?.[0] : undefined) ?? offset
      node = pair.value
    } else if (isSeq(node)) {
      node = node.items[Number(part)]
      offset = (isNode(node) ? node.range?.[0] : undefined) ?? offset
    } else return offset
  }
  return offset
}
