import fastify from 'fastify'

/** The supported versions of Fastify. For these tests the types of the older version are the same. */
export const FRAMEWORKS: readonly (readonly [name: string, framework: typeof fastify])[] = [
  ['Fastify 5', fastify],
  ['Fastify 4', (await import('fastify4' as string)).default as typeof fastify],
]
