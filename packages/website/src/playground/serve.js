import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname } from 'node:path'

const TYPES = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
])
const dist = new URL('../../dist/playground/', import.meta.url)

/** Serves only dist/playground/, and as plain text the page that its links lead to. */
export const server = createServer((request, response) => {
  const path = /^\/([\w./-]*)(?:\?|$)/.exec(request.url ?? '')?.[1] ?? ' '
  const about = path === 'guides/try-it.html'
  const file = path === '' ? 'index.html' : path
  readFile(about ? new URL('../../../../docs/guides/try-it.md', import.meta.url) : new URL(encodeURIComponent(file), dist)).then(
    (content) => {
      const type = about ? 'text/plain; charset=utf-8' : (TYPES.get(extname(file)) ?? 'application/octet-stream')
      response.writeHead(200, { 'content-type': type }).end(content)
    },
    () => response.writeHead(404).end('There is no such file.'),
  )
})
