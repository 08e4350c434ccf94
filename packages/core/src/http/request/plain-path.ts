/** Kinds of characters in a path. Odd characters are 0. */
const PLAIN = 1
const SLASH = 2
const DOT = 3
const KINDS = new Uint8Array(128)
// Every router and URL parser reads these characters as they are.
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~!$&'()*+,=:@")
  KINDS[character.charCodeAt(0)] = PLAIN
KINDS[47] = SLASH
KINDS[46] = DOT

/** Longest path that is read by characters. Longer paths are read in pairs of octets, which takes a quarter of the time for 15 KB. */
const LONGEST_BY_CHARACTER = 512
/** Longest path that is read in pairs. It is the default size limit of Node.js for the head of a request. */
const LONGEST_BY_PAIRS = 16_384

/** Whether a path can be read in only one way: plain segments, no escape, no `//`, no `/` at the end, no `/.`. */
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

/** Flags of two octets: one is odd, the second is a slash, the first must not follow a slash. */
const ODD = 4
const ENDS = 2
const CLINGS = 1

/** A path as octets, and the same memory as pairs. */
const octets = Buffer.allocUnsafeSlow(LONGEST_BY_PAIRS + 2)
const pairs = new Uint16Array(octets.buffer)
/** Flags by pair: 64 KB, which take memory only after the first long path has filled them. */
const known = new Uint8Array(65_536)
let filled = false

/** Reads the whole path, even after an odd character, so that no path takes longer than a plain one. */
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
