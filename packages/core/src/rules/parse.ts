import { show } from '../report/errors.ts'
import { reasonOf } from '../report/show.ts'
import { placeAt, placeInJson, repeatedNames } from './json-places.ts'
import { MOST_PROBLEMS, type Path, type Place, Problems, RulesError } from './problems.ts'
import { parseYaml, repeated, type YamlLibrary } from './yaml.ts'

/** Longest document, in UTF-16 units. It is limited because parsing can't be interrupted. */
export const LONGEST_DOCUMENT = 8_000_000

/** The start of a UTF-16 text that was read as UTF-8: the byte order mark, or ASCII characters with zero bytes. */
const UTF_16 = /^(?:\ufffd\ufffd|.?\0)/

/** Options of `parseRules`. */
export interface ParseOptions {
  /**
   * Reads documents in YAML with the library `yaml`: `import * as yaml from 'yaml'`.
   *
   * @default none: documents are JSON
   * @see `@weir/core/docs/guides/rules.md`
   */
  readonly yaml?: YamlLibrary | undefined
}

/** A text that has been parsed as JSON or YAML. Its content is not checked yet. */
export interface ParsedRules {
  readonly value: unknown
  /** Returns the place of the value at a path, or of the nearest value around it. */
  placeOf(path: Path): Place | undefined
}

/**
 * Parses a text as JSON. If `yaml` is given and the text does not begin with a brace, it parses the text as YAML.
 *
 * @throws RulesError if the text is neither, has a key twice, or is longer than 8,000,000 characters
 */
export function parseRules(text: string, { yaml }: ParseOptions = {}): ParsedRules {
  if (typeof text !== 'string') throw problem(`it is ${show(text)}. Use a text`)
  if (text.length > LONGEST_DOCUMENT) throw problem(`it has ${text.length} characters, more than ${LONGEST_DOCUMENT}`)
  if (UTF_16.test(text)) throw problem('it looks like UTF-16. Save it as UTF-8')
  const plain = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  if (yaml === undefined || /^\s*\{/.test(plain)) return parseJson(plain, yaml)
  try {
    return parseYaml(plain, yaml)
  } catch (error) {
    // The library throws further errors in cases that it did not expect.
    throw error instanceof RulesError ? error : problem(`it is no YAML: ${reasonOf(error)}`)
  }
}

function parseJson(text: string, yaml: YamlLibrary | undefined): ParsedRules {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    const reason = reasonOf(error)
    const hint =
      yaml === undefined && !/^\s*\{/.test(text)
        ? '; for YAML run npm install yaml, and pass the option "yaml": import * as yaml from "yaml"'
        : ''
    throw problem(`it is no JSON: ${reason}${hint}`, placeAt(text, offsetOf(reason, text)))
  }
  const problems = new Problems(() => undefined)
  for (const { path, at, first } of repeatedNames(text, MOST_PROBLEMS))
    problems.add(path, repeated(String(path.at(-1)), placeAt(text, first)), placeAt(text, at))
  if (problems.list.length > 0) throw new RulesError(problems.list)
  return { value, placeOf: (path) => placeInJson(text, path) }
}

/** The offset of a syntax error. V8 adds it to the message. */
function offsetOf(reason: string, text: string): number {
  const [, position] = /at position (\d+)/.exec(reason) ?? []
  return position === undefined ? text.length : Number(position)
}

function problem(message: string, place?: Place): RulesError {
  return new RulesError([{ path: '', line: place?.line, column: place?.column, message }])
}
