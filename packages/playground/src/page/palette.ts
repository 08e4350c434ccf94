import { useEffect } from 'preact/hooks'
import type { Palette } from '../picture/paint.ts'

const NAMES = ['ink', 'soft', 'line', 'track', 'ok', 'no', 'warn', 'accent'] as const
let known: Palette | undefined

/** The same, where the style sheet is followed. */
export const VARIABLES: Palette = Object.fromEntries(NAMES.map((name) => [name, `var(--${name})`])) as unknown as Palette

/** The colours as the style sheet has them now: a canvas does not follow it by itself. */
export function palette(): Palette {
  if (known === undefined) {
    const style = getComputedStyle(document.documentElement)
    known = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as unknown as Palette
  }
  return known
}

/** Calls when the user's colour scheme changes. */
export function useScheme(changed: () => void): void {
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)')
    // After the style sheet has followed.
    const later = (): void =>
      void requestAnimationFrame(() => {
        known = undefined
        changed()
      })
    query.addEventListener('change', later)
    return () => query.removeEventListener('change', later)
  })
}
