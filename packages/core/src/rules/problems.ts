import { WeirError } from '../report/errors.ts'
import { withoutPage } from '../report/page.ts'
import { printable } from '../report/show.ts'

/** Where something stands in a document: the names and places on the way to it. */
export type Path = readonly (string | number)[]

/** A line and a column of a text, both from 1 on. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** A problem of a document. */
export interface RulesProblem {
  /** Such as `policies[0].limit`; empty for the whole document. */
  readonly path: string
  /** From 1 on; undefined where the document is no text. */
  readonly line: number | undefined
  readonly column: number | undefined
  /** The problem and the allowed values: one line that is safe to print. */
  readonly message: string
}

/** Problems of one document that are told; with more, something else is wrong than each of them. */
export const MOST_PROBLEMS = 10

/** A document that can't be used: nothing of it holds. Its code is `WEIR_RULES_REJECTED`. */
export class RulesError extends WeirError {
  override readonly name: string = 'RulesError'
  /** At least one, at most 10, in the order of the document. */
  readonly problems: readonly RulesProblem[]
  /** That of the document, as far as it is known. */
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

/** Collects what is wrong with a document. */
export class Problems {
  readonly list: RulesProblem[] = []
  readonly #placeOf: (path: Path) => Place | undefined

  constructor(placeOf: (path: Path) => Place | undefined) {
    this.#placeOf = placeOf
  }

  get full(): boolean {
    return this.list.length >= MOST_PROBLEMS
  }

  /** @param at where it stands, if that is known better than by the path */
  add(path: Path, message: string, at?: Place): void {
    if (this.full) return
    const place = at ?? this.#placeOf(path)
    this.list.push({ path: textOf(path), line: place?.line, column: place?.column, message: printable(message, 500) })
  }

  /** Runs what throws errors about options; undefined when it did. */
  try<T>(path: Path, run: () => T): T | undefined {
    try {
      return run()
    } catch (error) {
      if (!(error instanceof WeirError)) throw error
      const option = optionOf(error.message)
      // A document has no functions.
      const message = withoutPage(error.message)
        .replace('a function of the request', 'the name of a function')
        .replace(/ To reject every request, .*$/, '')
      this.add([...path, ...(option[0] === path.at(-1) ? option.slice(1) : option)], message)
      return undefined
    }
  }
}

/** Functions that make options, and that errors of these options name. A document has none of them. */
const MAKERS: readonly string[] = ['calendar', 'escalating', 'paths']

/** The option that an error of core is about, as a path: its messages begin with it. */
function optionOf(message: string): Path {
  const [, option = ''] = /^(?:Unknown option|Option|Remove|Use either) "([^"]*)"/.exec(message) ?? []
  return option === '' ? [] : option.split('.').filter((part) => !MAKERS.includes(part))
}

function textOf(path: Path): string {
  let text = ''
  for (const part of path) text += typeof part === 'number' ? `[${part}]` : text === '' ? part : `.${part}`
  return printable(text, 200)
}
