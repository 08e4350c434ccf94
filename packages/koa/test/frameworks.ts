import Koa from 'koa'

/** The supported versions of Koa. The older one has the same types, as far as these tests use them. */
export const FRAMEWORKS: readonly (readonly [name: string, framework: typeof Koa])[] = [
  ['Koa 3', Koa],
  ['Koa 2', (await import('koa2' as string)).default as typeof Koa],
]
