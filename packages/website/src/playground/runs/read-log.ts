/** The most characters of a line. The rest of a longer line is ignored, because a file without line breaks would fill memory. */
const LONGEST_LINE = 65_536

/**
 * Reads the lines of a text or of a gzip file in pieces, without blank lines.
 *
 * @throws Error (rejects) if the file can't be decompressed
 */
export async function readLines(log: Blob, take: (line: string) => void): Promise<void> {
  const reader = (await charactersOf(log)).getReader()
  let rest = ''
  const end = (line: string): void => {
    if (line.trim() !== '') take(line.trimEnd())
  }
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new Error(`A dropped file can't be read (${String(error)}). If it is compressed, decompress it first.`)
    })
    if (done) break
    const lines = (rest + value).split('\n')
    rest = (lines.pop() ?? '').slice(0, LONGEST_LINE)
    for (const line of lines) end(line)
  }
  end(rest)
}

/** Decodes each byte as one character, as the parser needs it. */
async function charactersOf(log: Blob): Promise<ReadableStream<string>> {
  const [first, second] = new Uint8Array(await log.slice(0, 2).arrayBuffer())
  const bytes = first === 0x1f && second === 0x8b ? log.stream().pipeThrough(new DecompressionStream('gzip')) : log.stream()
  return bytes.pipeThrough(new TextDecoderStream('latin1'))
}
