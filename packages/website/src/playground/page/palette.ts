import { useEffect } from 'preact/hooks'
import type { Palette } from '../picture/paint.ts'

const NAMES = ['ink', 'soft', 'line', 'track', 'ok', 'no', 'warn', 'accent'] as const
let known: Palette | undefined

/** The palette as CSS variables, which follow the style sheet. */
export const VARIABLES: Palette = Object.fromEntries(NAMES.map((name) => [name, `var(--${name})`])) as unknown as Palette

/** The current colours of the style sheet, because a canvas does not follow it. */
export function palette(): Palette {
  if (known === undefined) {
    const style = getComputedStyle(document.documentElement)
    known = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as unknown as Palette
  }
  return known
}

const concerned = new Set<() => void>()

/** Draws again after the colours have changed. */
export function repaint(): void {
  known = undefined
  for (const changed of concerned) changed()
}

/** Calls `changed` when the colours have changed. */
export function useScheme(changed: () => void): void {
  useEffect(() => {
    concerned.add(changed)
    return () => void concerned.delete(changed)
  })
}
