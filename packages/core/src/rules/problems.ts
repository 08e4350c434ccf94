import { WeirError } from '../report/errors.ts'
import { withoutPage } from '../report/page.ts'
import { printable } from '../report/show.ts'

/** The position of a value in a document: the names and indexes on the way to it. */
export type Path = readonly (string | number)[]

/** A line and a column of a text, both counted from 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** A problem of a document. */
export interface RulesProblem {
  /** Path of the value, e.g. `policies[0].limit`. Empty for the whole document. */
  readonly path: string
  /** Line in the document, counted from 1. Undefined if the document is no text, like `column`. */
  readonly line: number | undefined
  readonly column: number | undefined
  /** The problem and the allowed values: one line that is safe to print. */
  readonly message: string
}

/** The most problems of one document that are reported. More problems usually have a common cause. */
export const MOST_PROBLEMS = 10

/** Reports a document that can't be used. None of its rules apply. Its code is `WEIR_RULES_REJECTED`. */
export class RulesError extends WeirError {
  override readonly name: string = 'RulesError'
  /** The problems in the order of the document: at least 1, at most 10. */
  readonly problems: readonly RulesProblem[]
  /** Version of the document. Undefined if it can't be read. */
  readonly version: number | undefined

  constructor(problems: readonly RulesProblem[], version?: number) {
    const [first, ...others] = problems as [RulesProblem, ...RulesProblem[]]
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`
    super('WEIR_RULES_REJECTED', `Rules${version === undefined ? '' : ` of version ${version}`} are rejected: ${described(first)}${more}`)
    this.problems = problems
    this.version = version
  }
}

/** A problem with its place, for people. */
export function described({ path, line, column, message }: RulesProblem): string {
  const place = line === undefined ? '' : ` (line ${line}, column ${column})`
  return path === '' && place === '' ? message : `${path === '' ? 'the document' : path}${place}: ${message}`
}

/** Collects the problems of a document. */
export class Problems {
  readonly list: RulesProblem[] = []
  readonly #placeOf: (path: Path) => Place | undefined

  constructor(placeOf: (path: Path) => Place | undefined) {
    this.#placeOf = placeOf
  }

  get full(): boolean {
    return this.list.length >= MOST_PROBLEMS
  }

  /** @param at the place of the problem, if it is more exact than the path's */
  add(path: Path, message: string, at?: Place): void {
    if (this.full) return
    const place = at ?? this.#placeOf(path)
    this.list.push({ path: textOf(path), line: place?.line, column: place?.column, message: printable(message, 500) })
  }

  /** Runs code that throws errors about options. Returns undefined if it threw. */
  try<T>(path: Path, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof WeirError)) throw error
      const option = optionOf(error.message)
      // A document names functions and can't contain them, so the message is changed.
      const message = withoutPage(error.message)
        .replace('a function of the request', 'the name of a function')
        .replace(/ To reject every request, .*$/, '')
      this.add([...path, ...(option[0] === path.at(-1) ? option.slice(1) : option)], message)
      return undefined
    }
  }
}

/** Functions that make options, and that errors of these options name. A document has none of them, so paths leave their names out. */
const MAKERS: readonly string[] = ['calendar', 'escalating', 'paths']

/** The option at the start of an error message of core, as a path. */
function optionOf(message: string): Path {
  const [, option = ''] = /^(?:Unknown option|Option|Remove|Use either) "([^"]*)"/.exec(message) ?? []
  return option === '' ? [] : option.split('.').filter((part) => !MAKERS.includes(part))
}

function textOf(path: Path): string {
  let text = ''
  for (const part of path) text += typeof part === 'number' ? `[${part}]` : text === '' ? part : `.${part}`
  return printable(text, 200)
}
