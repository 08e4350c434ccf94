import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sourceEntries } from '@weir/tooling/workspace'
import type { Node } from 'typescript/unstable/ast'
import { API, type Checker, type Symbol as Known, type Project, SymbolFlags } from 'typescript/unstable/sync'

const PACKAGE = fileURLToPath(new URL('../../..', import.meta.url))
export const ROOT: string = join(PACKAGE, '../..')

/** The docstring of a declaration. */
export interface Docstring {
  readonly text: string
  readonly tags: readonly { readonly name: string; readonly content: string }[]
}

/** The sources of the public packages as the compiler reads them. Close them, because they have a process. */
export class Sources {
  /** The files of all entries. */
  readonly entries: readonly string[] = [...sourceEntries().values()]
  readonly project: Project
  readonly checker: Checker
  readonly #api = new API({ cwd: ROOT })
  readonly #folder: string

  /**
   * @param name different for each opener, because tests run at the same time
   * @param more text of a further file, for tests
   */
  constructor(name: string, more = '') {
    this.#folder = join(PACKAGE, 'node_modules', `.weir-${name}`)
    const config = join(this.#folder, 'tsconfig.json')
    mkdirSync(this.#folder, { recursive: true })
    writeFileSync(this.more, more)
    writeFileSync(config, JSON.stringify({ extends: join(ROOT, 'tsconfig.base.json'), files: [...this.entries, this.more] }))
    const project = this.#api.updateSnapshot({ openProjects: [config] }).getProject(config)
    if (project === undefined) throw new Error('The project could not be opened')
    this.project = project
    this.checker = project.checker
  }

  /** The further file. */
  get more(): string {
    return join(this.#folder, 'more.ts')
  }

  close(): void {
    this.#api.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** The exports of a file, with the declared symbol of each re-export. */
  exportsOf(file: string): readonly Known[] {
    const source = this.project.program.getSourceFile(file)
    const module = source && this.checker.getSymbolAtLocation(source)
    if (module === undefined) throw new Error(`${file} is not part of the program`)
    return this.checker
      .getExportsOfModule(module)
      .map((exported) => ((exported.flags & SymbolFlags.Alias) !== 0 ? this.checker.getAliasedSymbol(exported) : exported))
  }

  /** Whether a symbol is declared in the sources of this repository. */
  isOurs(symbol: Known): boolean {
    return symbol.declarations.some(
      ({ path }) => (/\/packages\/\w+\/src\//.test(path) && !path.includes('/node_modules/')) || path === this.more,
    )
  }
}

/** The file of a declaration, relative to the repository. */
export function fileOf(node: Node): string {
  return relative(ROOT, node.getSourceFile().fileName)
}

/** The source of a node without its comments. */
export function textOf(node: Node): string {
  const source = node.getSourceFile()
  return source.text.slice(node.getStart(source), node.end)
}

/** Read from the text, because the checker joins the docstrings of overloads. */
export function docstringOf(node: Node): Docstring {
  const source = node.getSourceFile()
  const comment = [...source.text.slice(node.pos, node.getStart(source)).matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\//g)].at(-1)?.[1] ?? ''
  const [text = '', ...tags] = comment.replaceAll(/\n *\* ?/g, '\n').split(/(?:^|\n) ?@(?=\w)/)
  return {
    text: text.trim(),
    tags: tags.map((tag) => {
      const [, name = '', content = ''] = /^(\w+)([\s\S]*)$/.exec(tag) ?? []
      return { name, content: content.trim() }
    }),
  }
}

/** The pages of the documentation that a docstring refers to, as paths of the repository, possibly with `#` and a heading. */
export function pagesOf({ tags }: Docstring): string[] {
  // The page is in backquotes, because TypeScript reads an @ at the beginning as another tag.
  return tags.filter(({ name }) => name === 'see').map(({ content }) => /^`@weir\/core\/(docs\/.*)`$/.exec(content)?.[1] ?? content)
}
