import type { IncomingMessage } from 'node:http'
import type { KeyOption, KeySource, MatchOption } from '@weir/core'
import { paths } from '@weir/core/http'

/** Nearly the maximum that Node.js accepts in a request line and its headers. */
const LONG = 15_000

/** A kind of request that clients may send, and the way to count it. `#` in a text is a number that differs each time. */
interface Kind {
  readonly guard: (header: (name: string) => KeySource<IncomingMessage>) => {
    readonly key: KeyOption<IncomingMessage>
    readonly match?: MatchOption<IncomingMessage>
  }
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly rejected?: boolean
}

const repeated = (text: string): string => text.repeat(Math.ceil(LONG / text.length)).slice(0, LONG)
const byRoute = () => ({ key: 'route' as const })
const byPattern = () => ({ key: 'route' as const, match: paths('/api/*rest') })
const everybody = () => ({ key: 'all' as const })
const rejection = (accept: string): Kind => ({ guard: everybody, rejected: true, headers: { accept } })
const path = (text: string): Kind => ({ guard: byPattern, path: `/api/#/${repeated(text)}` })

/** A request as browsers send it. */
export const NORMAL = {
  path: '/api/items/#?page=2',
  headers: {
    accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8,x/#',
    'x-key': 'customer-#',
    'x-a': 'tenant-#',
    'x-b': 'user-#',
  },
} as const

const KINDS = {
  'a normal one, again': { guard: byRoute },
  'Accept, many ranges, rejected': rejection(`a/b#,${repeated('a/b,')}`),
  'Accept, many weights, rejected': rejection(`a/b#,${repeated('*/*;q=0.1,')}`),
  'Accept, quoted, rejected': rejection(`a/b#;x="${repeated('a,;')}"`),
  'path of backslashes': path('\\'),
  'path of |': path('|'),
  'path of %': path('%'),
  'path of %41': path('%41'),
  'path of slashes': path('/'),
  'path of semicolons': path(';'),
  'path of dots': path('../'),
  'path of octets above ASCII': path('\u00ff'),
  'path of 1,000 segments': path('segment-names/'),
  'path of 1,000 segments and a %': { guard: byPattern, path: `/api/#/${repeated('segment-names/')}%` },
  'path, counted by route': { guard: byRoute, path: `/#/${repeated('aB|\\%')}` },
  'query of many parameters': { guard: byRoute, path: `/api/items/7?#&${repeated('a=1&')}` },
  'absolute target': { guard: byRoute, path: `http://example.org:80/${repeated('x')}#` },
  'header key': { guard: (header) => ({ key: header('x-key') }), headers: { 'x-key': `#${repeated('x')}` } },
  'two header keys of | and \\': {
    guard: (header) => ({ key: [header('x-a'), header('x-b')] }),
    headers: { 'x-a': `#${repeated('|').slice(LONG / 2)}`, 'x-b': repeated('\\').slice(LONG / 2) },
  },
  'function that returns the URL': { guard: () => ({ key: (request) => request.url }), path: `/#?${repeated('a=1&')}` },
  'X-Forwarded-For': { guard: () => ({ key: 'ip' }), headers: { 'x-forwarded-for': `#, ${repeated('192.0.2.7, ')}` } },
} as const satisfies Readonly<Record<string, Kind>>

export type WorstKind = keyof typeof KINDS

export const REQUESTS: Readonly<Record<WorstKind, Kind>> = KINDS
