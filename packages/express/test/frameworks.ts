import express from 'express'

/** The supported versions of Express. The older one has the same types, as far as these tests use them. */
export const FRAMEWORKS: readonly (readonly [name: string, framework: typeof express])[] = [
  ['Express 5', express],
  ['Express 4', (await import('express4' as string)).default as typeof express],
]
