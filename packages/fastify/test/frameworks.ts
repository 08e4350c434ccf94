import fastify from 'fastify'

/** The supported versions of Fastify. The older one has the same types, as far as these tests use them. */
export const FRAMEWORKS: readonly (readonly [name: string, framework: typeof fastify])[] = [
  ['Fastify 5', fastify],
  ['Fastify 4', (await import('fastify4' as string)).default as typeof fastify],
]
