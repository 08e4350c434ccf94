import { show } from '../report/errors.ts'
import { type Path, type Place, Problems, RulesError } from './problems.ts'

/** The parts of the library `yaml` (version 2) that Weir uses. */
export interface YamlLibrary {
  parseDocument(
    text: string,
    options: {
      readonly lineCounter: never
      readonly version: '1.2'
      readonly logLevel: 'error'
      readonly uniqueKeys: false
      readonly prettyErrors: false
    },
  ): YamlText
  readonly LineCounter: new () => YamlLines
  readonly isAlias: (node: unknown) => boolean
  readonly isMap: (node: unknown) => boolean
  readonly isScalar: (node: unknown) => boolean
  readonly isSeq: (node: unknown) => boolean
}

interface YamlText {
  readonly errors: readonly { readonly code: string; readonly message: string; readonly pos: readonly [number, number] }[]
  readonly contents: unknown
  getIn(path: Iterable<unknown>, keepScalar?: boolean): unknown
}

interface YamlLines {
  linePos(offset: number): { readonly line: number; readonly col: number }
}

/** A node of the library, of any kind. The fields of other kinds are undefined. */
interface YamlNode {
  readonly range?: readonly number[] | null
  readonly anchor?: string
  /** The name of an alias, or the text of a scalar. */
  readonly source?: string
  readonly type?: string
  readonly value?: unknown
  readonly items?: readonly unknown[]
}

/** The most values that aliases may add to a document. A few lines of aliases can stand for billions of values. */
const MOST_COPIED = 100_000

/** The value of a YAML text, and the places of its parts. */
export interface YamlValue {
  readonly value: unknown
  placeOf(path: Path): Place | undefined
}

/**
 * Reads a YAML 1.2 text, and merge keys (`<<`), in time linear in its length. The library only parses here. Its own conversion compares
 * every key of a map with all others, searches all anchors for each alias, and prints a whole line with each of its errors.
 *
 * @throws RulesError for a text that is no YAML, and for keys that appear twice
 */
export function parseYaml(text: string, library: YamlLibrary): YamlValue {
  const lines = new library.LineCounter()
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const placeOf = (node: unknown): Place | undefined => {
    const start = (node as YamlNode | null | undefined)?.range?.[0]
    return start === undefined ? undefined : placeAt(start)
  }
  const document = withoutStacks(() =>
    library.parseDocument(text, {
      lineCounter: lines as never,
      version: '1.2',
      // At other levels the library warns the process of keys that it turns into text.
      logLevel: 'error',
      uniqueKeys: false,
      prettyErrors: false,
    }),
  )
  const problems = new Problems(() => undefined)
  const [wrong] = document.errors
  if (wrong !== undefined) problems.add([], `it is no YAML: ${reasonOf(wrong)}`, placeAt(wrong.pos[0]))
  const value = wrong === undefined ? new Values(library, problems, placeOf).of(document.contents) : undefined
  if (problems.list.length > 0) throw new RulesError(problems.list)
  return {
    value,
    placeOf: (path) => {
      for (let length = path.length; length >= 0; length--) {
        const place = placeOf(document.getIn(path.slice(0, length), true))
        if (place !== undefined) return place
      }
      return undefined
    },
  }
}

/** Errors without stacks take a tenth of the time. The library makes an error for each problem: up to one per character. */
function withoutStacks<T>(run: () => T): T {
  const { stackTraceLimit } = Error
  Reflect.set(Error, 'stackTraceLimit', 0)
  try {
    return run()
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  }
}

function reasonOf({ code, message }: YamlText['errors'][number]): string {
  if (code === 'MULTIPLE_DOCS') return 'it has several documents, separated by "---". Keep one'
  if (message.includes('call stack')) return 'its lists and maps are nested too deeply'
  return message.split('\n')[0] as string
}

/** Converts nodes to values. */
class Values {
  readonly #library: YamlLibrary
  readonly #problems: Problems
  readonly #placeOf: (node: unknown) => Place | undefined
  /** Values with an anchor, added once they are complete, so that an alias inside its own anchor finds none. */
  readonly #anchors = new Map<string, { readonly value: unknown; readonly size: number }>()
  readonly #path: (string | number)[] = []
  /** Nodes so far, including the nodes that aliases stand for. */
  #size = 0
  #copied = 0

  constructor(library: YamlLibrary, problems: Problems, placeOf: (node: unknown) => Place | undefined) {
    this.#library = library
    this.#problems = problems
    this.#placeOf = placeOf
  }

  of(given: unknown): unknown {
    const { isAlias, isMap, isScalar, isSeq } = this.#library
    const node = given as YamlNode | null
    const before = this.#size++
    let value: unknown = null
    if (node === null) return value
    if (isScalar(node)) value = node.value
    else if (isAlias(node)) value = this.#alias(node)
    else if (isMap(node)) value = this.#map(node)
    else if (isSeq(node)) value = node.items?.map((item, place) => this.#at(place, item))
    else this.#wrong('It is of a type that rules have no use for.', node)
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, { value, size: this.#size - before })
    return value
  }

  #at(step: string | number, node: unknown): unknown {
    this.#path.push(step)
    const value = this.of(node)
    this.#path.pop()
    return value
  }

  #alias(node: YamlNode): unknown {
    const found = this.#anchors.get(node.source as string)
    if (found === undefined) return this.#wrong(`The alias *${node.source} has no anchor &${node.source} before it.`, node)
    this.#size += found.size
    this.#copied += found.size
    if (this.#copied <= MOST_COPIED) return found.value
    if (this.#copied - found.size <= MOST_COPIED)
      this.#wrong(`The aliases up to this one stand for more than ${MOST_COPIED} values. Write the values out, or as JSON.`, node)
    return null
  }

  #map({ items = [] }: YamlNode): object {
    const own = new Map<string, unknown>()
    const keys = new Map<string, unknown>()
    const merged: unknown[] = []
    for (const { key, value } of items as readonly { readonly key: YamlNode | null; readonly value: unknown }[]) {
      const merges = key?.type === 'PLAIN' && key.source === '<<'
      const name = merges ? '<<' : this.#name(key)
      if (keys.has(name)) this.#repeated(name, key, keys.get(name))
      keys.set(name, key)
      if (merges) merged.push(...this.#merged(value))
      else own.set(name, this.#at(name, value))
    }
    // The first of two merged maps takes precedence over the second, and this map's own keys take precedence over both.
    return Object.fromEntries([...merged.reverse().flatMap((map) => Object.entries(map as object)), ...own])
  }

  #name(key: YamlNode | null): string {
    const name = this.of(key)
    if (typeof name === 'object' && name !== null) this.#wrong(`A key is ${show(name)}. Use a text.`, key)
    return String(name ?? '')
  }

  /** The maps of a merge key. */
  #merged(node: unknown): readonly object[] {
    const given = this.#at('<<', node)
    const maps = Array.isArray(given) ? given : [given]
    if (maps.every((map) => typeof map === 'object' && map !== null && !Array.isArray(map))) return maps as readonly object[]
    this.#wrong('The merge key << needs a map, the alias of one such as *base, or a list of these.', node)
    return []
  }

  #repeated(name: string, key: unknown, first: unknown): void {
    const place = this.#placeOf(key)
    this.#problems.add([...this.#path, name], repeated(name, this.#placeOf(first)), place)
  }

  #wrong(message: string, node: unknown): null {
    this.#problems.add(this.#path, message, this.#placeOf(node))
    return null
  }
}

/** The message for a key that an object has twice. */
export function repeated(name: string, first: Place | undefined): string {
  const where = first === undefined ? '' : `; the first is in line ${first.line}`
  return `The key ${show(name)} appears twice${where}. Remove one of the two.`
}
