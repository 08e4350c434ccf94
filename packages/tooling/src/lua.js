// Shortens Lua for published packages. Scripts are sent to servers and bundled as they are, but their sources are written for readers.

const KEYWORDS = new Set(
  'and break do else elseif end false for function goto if in local nil not or repeat return then true until while'.split(' '),
)
/** Words that an `end` closes. The `end` of `for` and `while` closes their `do`. */
const BLOCKS = new Set(['function', 'do', 'if'])
/** The globals of a Redis script: values that Redis passes to it, and the globals of Lua that it may use. */
const GLOBALS = new Set(
  'redis cjson cmsgpack struct bit KEYS ARGV string table math unpack select pairs ipairs next tonumber tostring type error pcall assert rawget rawset setmetatable'.split(
    ' ',
  ),
)
const TOKEN =
  /--\[\[[\s\S]*?\]\]|--[^\n]*|\[\[[\s\S]*?\]\]|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|\.\.\.|\.\.|[=~<>]=|[^\s]/g

/**
 * Removes comments and needless space from scripts, and shortens the names of local variables. A name gets the same short name in all of
 * them, so pieces of scripts can also be passed.
 *
 * @param {readonly string[]} scripts
 * @returns {string[]}
 */
export function shortenLua(scripts) {
  const all = scripts.map((script) => (script.match(TOKEN) ?? []).filter((token) => !token.startsWith('--')))
  /** @type {Map<string, number>} */
  const uses = new Map()
  for (const name of all.flatMap(declared)) uses.set(name, 0)
  for (const name of uses.keys()) if (GLOBALS.has(name)) throw new Error(`A local variable has the name of what is there already: ${name}`)
  for (const tokens of all) {
    const fields = fieldsOf(tokens)
    for (const [at, token] of tokens.entries()) if (uses.has(token) && !fields.has(at)) uses.set(token, (uses.get(token) ?? 0) + 1)
  }
  // A short name must not equal a name that is not shortened.
  const taken = new Set([...KEYWORDS, ...GLOBALS, ...all.flat().filter((token) => /^[A-Za-z_]\w*$/.test(token) && !uses.has(token))])
  /** @type {Map<string, string>} */
  const short = new Map()
  const names = shortNames(taken)
  for (const [name] of [...uses].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))) short.set(name, String(names.next().value))
  return all.map((tokens) => {
    const fields = fieldsOf(tokens)
    return joined(tokens.map((token, at) => (fields.has(at) ? token : (short.get(token) ?? token))))
  })
}

/**
 * The names of local variables and parameters.
 *
 * @param {readonly string[]} tokens
 * @returns {string[]}
 */
function declared(tokens) {
  /** @type {string[]} */
  const names = []
  for (let at = 0; at < tokens.length; at++) {
    if (tokens[at] === 'local' && tokens[at + 1] !== 'function') {
      for (let next = at + 1; ; next += 2) {
        names.push(String(tokens[next]))
        if (tokens[next + 1] !== ',') break
      }
    } else if (tokens[at] === 'local') names.push(String(tokens[at + 2]))
    else if (tokens[at] === 'for') {
      for (let next = at + 1; tokens[next] !== 'in' && tokens[next] !== '='; next++)
        if (tokens[next] !== ',') names.push(String(tokens[next]))
    } else if (tokens[at] === 'function') {
      let next = at + 1
      while (tokens[next] !== '(') next++
      for (next++; tokens[next] !== ')'; next++) if (tokens[next] !== ',' && tokens[next] !== '...') names.push(String(tokens[next]))
    }
  }
  return names
}

/**
 * The places of names that are fields: after a dot or colon, and before `=` in a table.
 *
 * @param {readonly string[]} tokens
 * @returns {Set<number>}
 */
function fieldsOf(tokens) {
  /** @type {Set<number>} */
  const fields = new Set()
  /** @type {string[]} */
  const open = []
  for (const [at, token] of tokens.entries()) {
    if (token === '(' || token === '{' || token === '[') open.push(token)
    else if (token === ')' || token === '}' || token === ']') open.pop()
    // A function within a table contains statements until its `end`.
    else if (BLOCKS.has(token)) open.push(token)
    else if (token === 'end') open.pop()
    if (tokens[at - 1] === '.' || tokens[at - 1] === ':') fields.add(at)
    else if (open.at(-1) === '{' && tokens[at + 1] === '=' && (tokens[at - 1] === '{' || tokens[at - 1] === ',')) fields.add(at)
  }
  return fields
}

/** @param {ReadonlySet<string>} taken */
function* shortNames(taken) {
  const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
  for (const letter of letters) if (!taken.has(letter)) yield letter
  for (const first of letters) for (const second of letters) if (!taken.has(first + second)) yield first + second
}

/**
 * Joins tokens, with a space only between two tokens that would otherwise be read as one.
 *
 * @param {readonly string[]} tokens
 */
function joined(tokens) {
  let text = ''
  let last = ''
  for (const token of tokens) {
    const apart =
      (/^\w/.test(last) && /^\w/.test(token)) ||
      (/^[\d.]/.test(last) && /^[\d.]/.test(token)) ||
      (last.endsWith('.') && token.startsWith('.')) ||
      (last === '-' && token === '-')
    text += apart ? ` ${token}` : token
    last = token
  }
  return text
}
