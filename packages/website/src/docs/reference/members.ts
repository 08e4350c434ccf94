import {
  isMethodDeclaration,
  isMethodSignatureDeclaration,
  isPropertySignatureDeclaration,
  isTypeLiteralNode,
  type Node,
  type ParameterDeclaration,
} from 'typescript/unstable/ast'
import { docstringOf, type Sources, textOf } from './sources.ts'
import { effectText } from './tables.ts'

/** A table of the members of a class or interface that users read or call. */
export interface MemberTable {
  readonly page: string
  /** An export of `@weir/core`. */
  readonly of: string
  readonly head: readonly string[]
  /** Only these, in this order. Otherwise all in the order of the declarations. */
  readonly only?: readonly string[]
}

const PAGE = 'docs/reference/throttler.md'
const METHODS = { page: PAGE, of: 'Throttler', head: ['method', 'effect'] } as const
const FIELDS = { page: PAGE, head: ['field', 'meaning'] } as const

/** By the name of its mark. */
export const MEMBER_TABLES: Readonly<Record<string, MemberTable>> = {
  'throttler-decide': { ...METHODS, only: ['check', 'checkAsync', 'peek'] },
  'throttler-wait': { ...METHODS, only: ['acquire', 'tryAcquire', 'schedule', 'wrap', 'waitFor', 'waiting'] },
  'throttler-reserve': { ...METHODS, only: ['reserve', 'reserveAsync'] },
  'throttler-receipt': { page: PAGE, of: 'Receipt', head: ['member', 'effect'], only: ['isOpen', 'used', 'settle', 'cancel'] },
  'throttler-correct': { ...METHODS, only: ['refund', 'charge', 'release'] },
  'throttler-keys': { ...METHODS, only: ['block', 'unblock', 'reset', 'resetAll', 'usage', 'explain'] },
  'throttler-rules': {
    ...METHODS,
    head: ['member', 'effect'],
    only: ['update', 'on', 'start', 'flush', 'close', 'state', 'policies', 'nodeId'],
  },
  'throttler-usage': { ...FIELDS, of: 'Usage' },
  'throttler-explain': { ...FIELDS, of: 'Explanation' },
  'throttler-decision': { ...FIELDS, of: 'Decision' },
  'throttler-events': { page: PAGE, of: 'ThrottlerEvents', head: ['event', 'fields', 'when'] },
}

/** The rows of a table with its head. */
export function memberRows({ page, of, head, only }: MemberTable, sources: Sources): string[][] {
  const members = membersOf(of, sources)
  const names = only ?? [...members.keys()]
  const rows = names.flatMap((name) => (members.get(name) ?? []).map((node) => memberRow(name, node, page)))
  return [[...head], ...rows]
}

/** The declarations of public members by name. Overloads are several, without the implementation. */
export function membersOf(type: string, sources: Sources): ReadonlyMap<string, readonly Node[]> {
  const symbol = sources.entries.flatMap((file) => sources.exportsOf(file)).find(({ name }) => name === type)
  if (symbol === undefined) throw new Error(`No entry exports ${type}`)
  const properties = sources.checker.getPropertiesOfType(sources.checker.getDeclaredTypeOfSymbol(symbol))
  return new Map(
    properties
      .filter(({ name }) => !name.startsWith('__'))
      .map(({ name, declarations }) => {
        const nodes = declarations.flatMap((declaration) => declaration.resolve(sources.project) ?? [])
        return [name, nodes.length > 1 ? nodes.filter((node) => !isMethodDeclaration(node) || node.body === undefined) : nodes]
      }),
  )
}

function memberRow(name: string, node: Node, page: string): string[] {
  const docstring = docstringOf(node)
  if (isMethodDeclaration(node) || isMethodSignatureDeclaration(node)) {
    const parameters = node.parameters.map(parameterText).join(', ')
    return [`\`${name}(${parameters})\``, effectText(docstring, page)]
  }
  const effect = effectText(docstring, page)
  const fields =
    isPropertySignatureDeclaration(node) && isTypeLiteralNode(node.type)
      ? node.type.members.filter(isPropertySignatureDeclaration)
      : undefined
  const names = fields?.map((field) => `\`${textOf(field.name)}\``)
  return names === undefined ? [`\`${name}\``, effect] : [`\`${name}\``, names.join(', '), effect]
}

function parameterText({ name, questionToken, initializer }: ParameterDeclaration): string {
  return questionToken !== undefined || initializer !== undefined ? `${textOf(name)}?` : textOf(name)
}
