import Koa from 'koa'

/** The supported versions of Koa. For these tests the types of the older version are the same. */
export const FRAMEWORKS: readonly (readonly [name: string, framework: typeof Koa])[] = [
  ['Koa 3', Koa],
  ['Koa 2', (await import('koa2' as string)).default as typeof Koa],
]
