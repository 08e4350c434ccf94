import { createParser } from 'eventsource-parser'

/** The most bytes of a JSON body, and characters of an event, that are kept to be parsed. */
const MOST_KEPT = 4 * 1024 * 1024
const JSON_TYPE = /^\s*(?:application|text)\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i
const EVENTS_TYPE = /^\s*text\/event-stream\s*(?:;|$)/i

/** Reads a body while it passes through. */
export interface BodyReader {
  push(bytes: Uint8Array): void
  /** The body is complete. */
  end(): void
}

/**
 * Parses a JSON body, or the data of each event of a stream. Bodies of more than 4 MiB are not parsed. In a stream, nothing is parsed from
 * an event of that size on. Invalid JSON is ignored, such as the `[DONE]` of OpenAI.
 *
 * @returns undefined for other types of content
 */
export function jsonValues(type: string, each: (value: unknown) => void): BodyReader | undefined {
  const parse = (text: string): void => {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return
    }
    each(value)
  }
  if (JSON_TYPE.test(type)) return jsonBody(parse)
  return EVENTS_TYPE.test(type) ? events(parse) : undefined
}

function jsonBody(parse: (text: string) => void): BodyReader {
  let chunks: Uint8Array[] = []
  let size = 0
  return {
    push(bytes) {
      size += bytes.byteLength
      if (size <= MOST_KEPT) chunks.push(bytes)
      else chunks = []
    },
    end() {
      if (size <= MOST_KEPT) parse(new TextDecoder().decode(Buffer.concat(chunks)))
    },
  }
}

function events(parse: (text: string) => void): BodyReader {
  const decoder = new TextDecoder()
  let tooLong = false
  const parser = createParser({
    onEvent: ({ data }) => parse(data),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') tooLong = true
    },
    maxBufferSize: MOST_KEPT,
  })
  const feed = (text: string): void => {
    if (!tooLong) parser.feed(text)
  }
  return {
    push: (bytes) => feed(decoder.decode(bytes, { stream: true })),
    // The last event may lack its empty line.
    end: () => feed(`${decoder.decode()}\n\n`),
  }
}
