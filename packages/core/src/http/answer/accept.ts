/** Characters of an `Accept` field that are read. Browsers send about 150. */
const LONGEST = 256

/** A client's preference for one media type. */
interface Liking {
  /** The precision of the range that names the type: 2 for the type itself, 1 for its group, 0 for any type, -1 without a range. */
  precision: number
  quality: number
  /** The index of the range in the field. */
  place: number
}

/**
 * The media type that a client prefers (RFC 9110, section 12.5.1). The most exact range that matches a type gives its quality. If types
 * have the same quality, the more exactly named type wins, then the earlier one in the field, then in the list. Undefined if the client
 * accepts none.
 *
 * In a longer field only the whole ranges among the first 256 characters count, so that a client can't choose the cost of its rejection.
 * There is one pass, without exceptions. A range that can't be read matches nothing.
 *
 * @param types in lower case, without parameters
 */
export function preferredType<Type extends string>(accept: string, types: readonly Type[]): Type | undefined {
  const likings = types.map((): Liking => ({ precision: -1, quality: 0, place: 0 }))
  const whole = accept.length <= LONGEST
  const end = whole ? accept.length : LONGEST
  let start = 0
  for (let place = 0; start < end; place++) {
    const comma = endOfPart(accept, start, end, ',')
    if (comma === end && !whole) break
    note(accept.slice(start, comma), place, types, likings)
    start = comma + 1
  }
  let best = -1
  for (let i = 0; i < types.length; i++) {
    const liking = likings[i] as Liking
    if (liking.quality > 0 && (best < 0 || isBetter(liking, likings[best] as Liking))) best = i
  }
  return types[best]
}

/** Notes the quality and precision that one range gives each type. */
function note(range: string, place: number, types: readonly string[], likings: readonly Liking[]): void {
  const named = endOfPart(range, 0, range.length, ';')
  const name = range.slice(0, named).trim().toLowerCase()
  if (name !== '*/*' && !name.endsWith('/*') && !types.includes(name)) return
  const quality = qualityOf(range, named + 1)
  if (quality === undefined) return
  for (let i = 0; i < types.length; i++) {
    const type = types[i] as string
    const precision = name === '*/*' ? 0 : name === type ? 2 : type.startsWith(name.slice(0, -1)) && name.endsWith('/*') ? 1 : -1
    const liking = likings[i] as Liking
    if (precision < liking.precision || precision < 0) continue
    if (precision === liking.precision && quality < liking.quality) continue
    liking.precision = precision
    liking.quality = quality
    liking.place = place
  }
}

/** The weight among a range's parameters, at any position. Undefined if another parameter requires more than a plain type. */
function qualityOf(range: string, from: number): number | undefined {
  let quality = 1
  for (let start = from; start < range.length; ) {
    const end = endOfPart(range, start, range.length, ';')
    const parameter = range.slice(start, end).trim()
    start = end + 1
    if (parameter === '') continue
    const weight = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i.exec(parameter)
    if (weight === null) return undefined
    quality = Number(weight[1])
  }
  return quality
}

/** The end of the part of a text that begins at `start`: a separator outside of quotes, or `end`. */
function endOfPart(text: string, start: number, end: number, separator: ',' | ';'): number {
  const wanted = separator.charCodeAt(0)
  let quoted = false
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i)
    if (code === 92 && quoted) i++
    else if (code === 34) quoted = !quoted
    else if (code === wanted && !quoted) return i
  }
  return end
}

function isBetter(one: Liking, other: Liking): boolean {
  if (one.quality !== other.quality) return one.quality > other.quality
  if (one.precision !== other.precision) return one.precision > other.precision
  return one.place < other.place
}
