import express from 'express'

/** The supported versions of Express. For these tests the types of the older version are the same. */
export const FRAMEWORKS: readonly (readonly [name: string, framework: typeof express])[] = [
  ['Express 5', express],
  ['Express 4', (await import('express4' as string)).default as typeof express],
]
