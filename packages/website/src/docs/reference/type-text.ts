import {
  isArrayTypeNode,
  isFunctionTypeNode,
  isIntersectionTypeNode,
  isNamedTupleMember,
  isParenthesizedTypeNode,
  isRestTypeNode,
  isTupleTypeNode,
  isTypeAliasDeclaration,
  isTypeLiteralNode,
  isTypeOperatorNode,
  isTypeReferenceNode,
  isUnionTypeNode,
  type ParameterDeclaration,
  type TypeNode,
} from 'typescript/unstable/ast'
import { SymbolFlags } from 'typescript/unstable/sync'
import { type Sources, textOf } from './sources.ts'

/** Names that readers know, or whose parts would not help them. */
const KEPT: readonly string[] = ['Duration', 'Logger', 'ThrottlerState']

/** Parts of unions that a function returns if it has no value. */
const NOTHING: readonly string[] = ['undefined', 'null']

/** A type as a table shows it: without type parameters, types of parameters, `readonly` and promises, and with the parts of unions. */
export function typeText(node: TypeNode, sources: Sources): string {
  const text = (part: TypeNode): string => typeText(part, sources)
  if (isUnionTypeNode(node))
    return [
      ...new Set(
        node.types
          .map(text)
          .filter((part) => !NOTHING.includes(part))
          .map(inUnion),
      ),
    ].join(' | ')
  if (isParenthesizedTypeNode(node))
    return isUnionTypeNode(node.type) && isArrayTypeNode(node.parent) ? `(${text(node.type)})` : text(node.type)
  if (isTypeOperatorNode(node)) return text(node.type)
  // A name, because the values of a list are usually values of the option too.
  if (isArrayTypeNode(node))
    return isTypeReferenceNode(node.elementType) ? `${textOf(node.elementType.typeName)}[]` : `${text(node.elementType)}[]`
  if (isFunctionTypeNode(node))
    return `(${node.parameters.map(parameterText).join(', ')}) => ${node.type === undefined ? 'void' : text(node.type)}`
  if (isTypeLiteralNode(node)) return 'object'
  if (isIntersectionTypeNode(node)) return node.types.map(text).join(' & ')
  if (!isTypeReferenceNode(node)) return textOf(node)
  const name = textOf(node.typeName)
  const [first] = node.typeArguments ?? []
  if (['Awaitable', 'NoInfer', 'Readonly', 'Promise'].includes(name) && first !== undefined) return text(first)
  if (name === 'Record') return 'object'
  const symbol = sources.checker.getSymbolAtLocation(node.typeName)
  if (symbol === undefined || KEPT.includes(name)) return name
  if ((symbol.flags & SymbolFlags.TypeParameter) !== 0) return 'string'
  const target = (symbol.flags & SymbolFlags.Alias) !== 0 ? sources.checker.getAliasedSymbol(symbol) : symbol
  const declared = target.declarations[0]?.resolve(sources.project)
  if (declared !== undefined && isTypeAliasDeclaration(declared) && sources.isOurs(target))
    return isUnionTypeNode(declared.type) || isFunctionTypeNode(declared.type) ? text(declared.type) : name
  const type = sources.checker.getTypeFromTypeNode(node)
  const parts = type?.isUnionType() ? type.getTypes() : []
  const values = parts.flatMap((part) => (part.isStringLiteralType() ? [`'${part.value}'`] : []))
  return values.length > 0 && values.length === parts.length ? values.join(' | ') : name
}

/** The names of parameters. A parameter for the rest of the arguments shows the names of its tuple. */
function parameterText({ dotDotDotToken, name, type }: ParameterDeclaration): string {
  if (dotDotDotToken === undefined) return textOf(name)
  if (type === undefined || !isTupleTypeNode(type)) return `...${textOf(name)}`
  return type.elements
    .map((element) =>
      isNamedTupleMember(element) ? textOf(element.name) : isRestTypeNode(element) ? `...${textOf(name)}` : textOf(element),
    )
    .join(', ')
}

/** A function needs parentheses among other types. */
function inUnion(text: string): string {
  return /^\([^()]*\) => /.test(text) ? `(${text})` : text
}
