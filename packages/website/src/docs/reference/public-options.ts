import {
  isInterfaceDeclaration,
  isPropertySignatureDeclaration,
  isTypeAliasDeclaration,
  type Node,
  type PropertySignatureDeclaration,
} from 'typescript/unstable/ast'
import { type Symbol as Known, SignatureKind, SymbolFlags, type Type, TypeFlags } from 'typescript/unstable/sync'
import { type Docstring, docstringOf, fileOf, type Sources } from './sources.ts'

/** Types of options by their names. Types of their members, and of unnamed parameters, contain options too. */
const OPTIONS = /(?:Options|Input|Target)$/

/** An option that users can set, in its declaration. */
export interface PublicOption {
  readonly name: string
  /** Relative to the repository. */
  readonly file: string
  /** The interface or type alias that declares it. Empty for a parameter without a named type. */
  readonly declaredIn: string
  /** `file:line Type.option`. */
  readonly place: string
  readonly node: PropertySignatureDeclaration
  readonly type: Type
  readonly docstring: Docstring
}

/** The options that users can set, in all exports of these files. */
export function publicOptions(sources: Sources, files: readonly string[]): PublicOption[] {
  const search = new Search(sources)
  for (const file of files) search.entry(file)
  return [...search.options.values()]
}

export function isOptional(symbol: Known): boolean {
  return (symbol.flags & SymbolFlags.Optional) !== 0
}

class Search {
  /** By the place of the declaration, because types share members. */
  readonly options = new Map<string, PublicOption>()
  readonly #sources: Sources
  readonly #seen = new Set<number>()

  constructor(sources: Sources) {
    this.#sources = sources
  }

  get #checker() {
    return this.#sources.checker
  }

  /** Searches exported types of options, and the parameters of exported functions. */
  entry(file: string): void {
    for (const symbol of this.#sources.exportsOf(file)) {
      if ((symbol.flags & SymbolFlags.Type) !== 0 && OPTIONS.test(symbol.name))
        this.#walk(this.#checker.getDeclaredTypeOfSymbol(symbol), symbol.name)
      if ((symbol.flags & SymbolFlags.Function) === 0) continue
      const type = this.#checker.getTypeOfSymbol(symbol)
      for (const signature of type === undefined ? [] : this.#checker.getSignaturesOfType(type, SignatureKind.Call)) {
        for (const parameter of signature.getParameters()) this.#parameter(this.#checker.getTypeOfSymbol(parameter), symbol.name)
      }
    }
  }

  /** Ignores other named types, because they are values that functions return, such as decisions. */
  #parameter(type: Type | undefined, owner: string): void {
    const given = type && this.#checker.getNonNullableType(type)
    const symbol = given?.getAliasSymbol() ?? given?.getSymbol()
    if (given === undefined || symbol === undefined) return
    const isUnnamed = symbol.name === '__type' && this.#checker.getPropertiesOfType(given).some(isOptional)
    if (isUnnamed || OPTIONS.test(symbol.name)) this.#walk(given, owner)
  }

  #walk(type: Type | undefined, owner: string): void {
    if (type === undefined || this.#seen.has(type.id)) return
    this.#seen.add(type.id)
    if (type.isUnionType() || (type.isIntersectionType() && !this.#isOptions(type, owner))) {
      for (const part of type.getTypes()) this.#walk(part, owner)
      return
    }
    if (this.#checker.isArrayLikeType(type)) {
      for (const element of this.#checker.getTypeArguments(type as never)) this.#walk(element, owner)
      return
    }
    for (const { valueType } of this.#checker.getIndexInfosOfType(type)) this.#walk(valueType, owner)
    if (!this.#isOptions(type, owner)) return
    const name = type.getAliasSymbol()?.name ?? type.getSymbol()?.name ?? owner
    for (const member of this.#checker.getPropertiesOfType(type)) this.#member(member, name.startsWith('__') ? owner : name)
  }

  /** Whether users write the type as an object literal. Values with methods, such as stores and clocks, come from functions. */
  #isOptions(type: Type, owner: string): boolean {
    if ((type.flags & (TypeFlags.Object | TypeFlags.Intersection)) === 0 || this.#isCallable(type)) return false
    const name = type.getAliasSymbol()?.name ?? type.getSymbol()?.name ?? ''
    const members = this.#checker.getPropertiesOfType(type)
    if (!members.some((member) => this.#sources.isOurs(member))) return false
    // Without a name it is a part of the owner, such as the options that one adapter adds.
    if (OPTIONS.test(name.startsWith('__') ? owner : name)) return true
    return !members.some((member) => (member.flags & SymbolFlags.Property) === 0 || this.#isCallable(this.#checker.getTypeOfSymbol(member)))
  }

  #isCallable(type: Type | undefined): boolean {
    const given = type && this.#checker.getNonNullableType(type)
    return given !== undefined && this.#checker.getSignaturesOfType(given, SignatureKind.Call).length > 0
  }

  #member(member: Known, owner: string): void {
    const node = member.valueDeclaration?.resolve(this.#sources.project)
    if (node === undefined || !isPropertySignatureDeclaration(node) || !this.#sources.isOurs(member)) return
    const declared = this.#checker.getTypeOfSymbol(member)
    const type = declared && this.#checker.getNonNullableType(declared)
    if (type === undefined || (type.flags & TypeFlags.Never) !== 0) return
    const file = fileOf(node)
    const id = `${file}:${node.pos}`
    if (!this.options.has(id)) {
      const source = node.getSourceFile()
      const line = source.text.slice(0, node.getStart(source)).split('\n').length
      const place = `${file}:${line} ${owner}.${member.name}`
      this.options.set(id, { name: member.name, file, declaredIn: declarationOf(node), place, node, type, docstring: docstringOf(node) })
    }
    if (!this.#isCallable(type)) this.#walk(type, `${owner}.${member.name}`)
  }
}

function declarationOf(node: Node): string {
  for (let at: Node | undefined = node.parent; at !== undefined; at = at.parent)
    if (isInterfaceDeclaration(at) || isTypeAliasDeclaration(at)) return at.name.text
  return ''
}
