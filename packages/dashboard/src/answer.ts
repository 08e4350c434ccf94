import type { ServerResponse } from 'node:http'

type Fields = Readonly<Record<string, string>>

/** Answers in plain text, unless the client has disconnected or an answer was already sent. */
export function answer(response: ServerResponse, status: number, body: string | Buffer, fields: Fields = {}): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'Cross-Origin-Resource-Policy': 'same-origin',
    ...fields,
  })
  response.end(body)
}

export function json(response: ServerResponse, status: number, body: object): void {
  answer(response, status, JSON.stringify(body), { 'Content-Type': 'application/json; charset=utf-8' })
}

/** Sends a page with its Content-Security-Policy. */
export function html(
  response: ServerResponse,
  status: number,
  body: string | Buffer,
  policy: readonly string[],
  fields: Fields = {},
): void {
  answer(response, status, body, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': policy.join('; '),
    'Cross-Origin-Opener-Policy': 'same-origin',
    ...fields,
  })
}
