import { show } from '../report/errors.ts'
import { reasonOf } from '../report/show.ts'
import { placeAt, placeInJson } from './json-places.ts'
import { type Path, type Place, RulesError } from './problems.ts'

/** Longest document, in UTF-16 units: it is parsed in one go. */
export const LONGEST_DOCUMENT = 8_000_000

/** What is used of the library `yaml` (version 2). */
export interface YamlLibrary {
  parseDocument(text: string, options: { readonly lineCounter: never; readonly version: '1.2'; readonly logLevel: 'error' }): YamlText
  readonly LineCounter: new () => YamlLines
}

interface YamlText {
  readonly errors: readonly { readonly message: string; readonly pos: readonly [number, number] }[]
  getIn(path: Iterable<unknown>, keepScalar?: boolean): unknown
  toJS(): unknown
}

interface YamlLines {
  linePos(offset: number): { readonly line: number; readonly col: number }
}

/** How a text is read. */
export interface ParseOptions {
  /** The library `yaml`, for documents in YAML: `import * as yaml from 'yaml'`. Without it they are JSON. */
  readonly yaml?: YamlLibrary | undefined
}

/** A text that is JSON or YAML; what it says is not looked at yet. */
export interface ParsedRules {
  readonly value: unknown
  /** Where something stands in the text: the value at the path, or the nearest around it. */
  placeOf(path: Path): Place | undefined
}

/**
 * Reads a text as JSON, or as YAML where the library is given and the text does not begin with a brace.
 *
 * @throws RulesError when it is neither, or longer than 8,000,000 characters
 */
export function parseRules(text: string, { yaml }: ParseOptions = {}): ParsedRules {
  if (typeof text !== 'string') throw problem(`it is ${show(text)}; it must be a text`)
  if (text.length > LONGEST_DOCUMENT) throw problem(`it has ${text.length} characters; it must have at most ${LONGEST_DOCUMENT}`)
  const plain = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  return yaml === undefined || /^\s*\{/.test(plain) ? parseJson(plain, yaml) : parseYaml(plain, yaml)
}

function parseJson(text: string, yaml: YamlLibrary | undefined): ParsedRules {
  try {
    return { value: JSON.parse(text), placeOf: (path) => placeInJson(text, path) }
  } catch (error) {
    const reason = reasonOf(error)
    const hint =
      yaml === undefined && !/^\s*\{/.test(text)
        ? '; for YAML run npm install yaml, and pass the option "yaml": import * as yaml from "yaml"'
        : ''
    throw problem(`it is no JSON: ${reason}${hint}`, placeAt(text, offsetOf(reason, text)))
  }
}

/** V8 says where it could not go on. */
function offsetOf(reason: string, text: string): number {
  const [, position] = /at position (\d+)/.exec(reason) ?? []
  return position === undefined ? text.length : Number(position)
}

function parseYaml(text: string, { parseDocument, LineCounter }: YamlLibrary): ParsedRules {
  const lines = new LineCounter()
  const at = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  try {
    // It would have the process warn of what it turns into text.
    const document = parseDocument(text, { lineCounter: lines as never, version: '1.2', logLevel: 'error' })
    const [wrong] = document.errors
    if (wrong !== undefined) throw problem(`it is no YAML: ${wrong.message.split('\n')[0]}`, at(wrong.pos[0]))
    return { value: document.toJS(), placeOf: (path) => placeInYaml(document, path, at) }
  } catch (error) {
    // The library throws as well, e.g. for aliases that would become very much.
    throw error instanceof RulesError ? error : problem(`it is no YAML: ${reasonOf(error)}`)
  }
}

function placeInYaml(document: YamlText, path: Path, at: (offset: number) => Place): Place | undefined {
  for (let length = path.length; length >= 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { readonly range?: readonly number[] | null } | undefined
    const start = node?.range?.[0]
    if (start !== undefined) return at(start)
  }
  return undefined
}

function problem(message: string, place?: Place): RulesError {
  return new RulesError([{ path: '', line: place?.line, column: place?.column, message }])
}
