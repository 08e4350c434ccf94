/** Kinds of characters in a path, beside odd ones (0). */
const PLAIN = 1
const SLASH = 2
const DOT = 3
const KINDS = new Uint8Array(128)
// Characters that mean themselves to every router and URL parser.
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&'()*+,=:@")
  KINDS[character.charCodeAt(0)] = PLAIN
KINDS[47] = SLASH
KINDS[46] = DOT

/** Longer paths are read in pairs of octets: a 15 KB path takes a quarter of the time. */
const LONGEST_BY_CHARACTER = 512
/** As long as the head of a request may be, unless Node.js is told otherwise. */
const LONGEST_BY_PAIRS = 16_384

/** Whether nothing of a path can be read in two ways: plain segments, no escape, no `//`, no `/` at the end, no `/.`. */
export function isPlain(path: string): boolean {
  if (path.charCodeAt(0) !== 47) return false
  if (path.length === 1) return true
  if (path.charCodeAt(path.length - 1) === 47) return false
  return path.length <= LONGEST_BY_CHARACTER || path.length > LONGEST_BY_PAIRS ? isPlainByCharacters(path) : isPlainByPairs(path)
}

function isPlainByCharacters(path: string): boolean {
  let before = 0
  for (let i = 0; i < path.length; i++) {
    const kind = KINDS[path.charCodeAt(i)]
    if (!isPlainPair(before, kind)) return false
    before = kind as number
  }
  return true
}

function isPlainPair(before: number, kind: number | undefined): boolean {
  return kind !== undefined && kind !== 0 && (before !== SLASH || kind === PLAIN)
}

/** Flags of two octets: one is odd, the second is a slash, the first may not follow a slash. */
const ODD = 4
const ENDS = 2
const CLINGS = 1

/** A path as octets, and the same memory in pairs. */
const octets = Buffer.allocUnsafeSlow(LONGEST_BY_PAIRS + 2)
const pairs = new Uint16Array(octets.buffer)
/** By pair. 64 KB, which are filled, and so take memory, only where long paths are sent. */
const known = new Uint8Array(65_536)
let filled = false

/** Reads all of a path, wherever something odd may be found, so that no path takes longer than a plain one. */
function isPlainByPairs(path: string): boolean {
  if (!filled) fill()
  // A path beyond ASCII has more octets than characters.
  const end = octets.write(path, 'utf8')
  if (end !== path.length) return false
  octets[end] = 97
  const count = (end + 1) >> 1
  let found = 0
  let before = 0
  for (let i = 0; i < count; i++) {
    const pair = known[pairs[i] as number] as number
    found |= pair | ((before & pair) << 2)
    before = pair >> 1
  }
  return found < ODD
}

function fill(): void {
  for (let first = 0; first < 256; first++) {
    for (let second = 0; second < 256; second++) {
      octets[0] = first
      octets[1] = second
      const kind = KINDS[first] ?? 0
      const next = KINDS[second] ?? 0
      const plain = isPlainPair(0, kind) && isPlainPair(kind, next)
      known[pairs[0] as number] = (plain ? 0 : ODD) | (next === SLASH ? ENDS : 0) | (kind === PLAIN ? 0 : CLINGS)
    }
  }
  filled = true
}
