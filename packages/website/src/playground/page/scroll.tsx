import type { ComponentChildren } from 'preact'

/** Content that may be wider than the page. It scrolls separately, also with the keyboard. */
export function Scroll({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: else it could not be scrolled with the keyboard
    <section class="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  )
}
