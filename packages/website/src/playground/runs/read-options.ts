import { algorithms, calendar, escalating, type PolicyOptions } from '@weir/core'
import { type Expression, type Property, parseExpressionAt, type SpreadElement } from 'acorn'

/** Functions that options may call. No other code is run. */
const FUNCTIONS: ReadonlyMap<string, (...values: never[]) => unknown> = new Map(Object.entries({ calendar, escalating, ...algorithms }))

/** Options that can't be read. The message contains the reason and the line. */
export class OptionsError extends Error {
  override readonly name = 'OptionsError'
}

/**
 * Reads a policy's options as written in a program: an object of plain values and of core's algorithms. The text is parsed and not run,
 * so that a shared address can't make a page run code.
 *
 * @throws OptionsError for anything else
 * @throws WeirError from an algorithm's own checks
 */
export function readOptions(given: string): PolicyOptions {
  // Copied text often ends with a comma or a semicolon.
  const text = given.replace(/[\s;,]+$/, '')
  let expression: Expression
  try {
    expression = parseExpressionAt(text, 0, { ecmaVersion: 2023 })
  } catch (error) {
    throw new OptionsError(`This is no JavaScript: ${error instanceof Error ? error.message : error} (line:column)`)
  }
  const rest = text.slice(expression.end).replace(/\/\/.*|\/\*[\s\S]*?\*\//g, '')
  if (expression.type === 'SequenceExpression' || rest.trim() !== '')
    throw rejection(text, expression.end, 'Only one object of options is read. Remove the text after it')
  const value = read(text, expression)
  if (typeof value !== 'object' || value === null || Array.isArray(value) || expression.type !== 'ObjectExpression') {
    throw rejection(text, expression.start, "Options are an object, such as { limit: 100, interval: '1m' }")
  }
  return value as PolicyOptions
}

function read(text: string, node: Expression | SpreadElement): unknown {
  switch (node.type) {
    case 'Literal':
      if (node.regex !== undefined || node.bigint != null) break
      return node.value
    case 'TemplateLiteral':
      if (node.expressions.length > 0) break
      return node.quasis[0]?.value.cooked
    case 'UnaryExpression': {
      const value = read(text, node.argument)
      if (node.operator !== '-' || typeof value !== 'number') break
      return -value
    }
    case 'BinaryExpression':
      if (node.left.type === 'PrivateIdentifier') break
      return calculated(text, node.start, node.operator, read(text, node.left), read(text, node.right))
    case 'Identifier':
      if (node.name === 'undefined') return undefined
      if (node.name === 'Infinity') return Number.POSITIVE_INFINITY
      throw rejection(text, node.start, `"${node.name}" has no value here. Write the value itself`)
    case 'ArrayExpression':
      return node.elements.map((element) => (element === null ? undefined : read(text, element)))
    case 'ObjectExpression':
      return Object.fromEntries(node.properties.map((property) => entryOf(text, property)))
    case 'CallExpression': {
      const called = node.callee.type === 'Identifier' ? FUNCTIONS.get(node.callee.name) : undefined
      if (called === undefined) throw rejection(text, node.start, `Only these are called: ${[...FUNCTIONS.keys()].join(', ')}`)
      return called(...(node.arguments.map((argument) => read(text, argument)) as never[]))
    }
    case 'ArrowFunctionExpression':
    case 'FunctionExpression':
      throw rejection(text, node.start, 'Your functions are not run here. Use a value instead, or remove the option')
  }
  throw rejection(text, node.start, 'Only plain values are read')
}

function entryOf(text: string, property: Property | SpreadElement): readonly [string, unknown] {
  if (property.type === 'SpreadElement' || property.computed || property.kind !== 'init') {
    throw rejection(text, property.start, 'Only plain options are read')
  }
  if (property.method) throw rejection(text, property.start, 'Functions of yours are not run here')
  const { key } = property
  const name = key.type === 'Identifier' ? key.name : key.type === 'Literal' ? String(key.value) : undefined
  if (name === undefined) throw rejection(text, key.start, 'This is no name of an option')
  return [name, read(text, property.value)]
}

/** Calculates terms such as `60 * 1000`. */
function calculated(text: string, at: number, operator: string, left: unknown, right: unknown): number {
  if (typeof left === 'number' && typeof right === 'number') {
    if (operator === '*') return left * right
    if (operator === '/') return left / right
    if (operator === '+') return left + right
    if (operator === '-') return left - right
    if (operator === '**') return left ** right
  }
  throw rejection(text, at, 'Only numbers are calculated')
}

function rejection(text: string, at: number, message: string): OptionsError {
  return new OptionsError(`${message} (line ${text.slice(0, at).split('\n').length})`)
}
