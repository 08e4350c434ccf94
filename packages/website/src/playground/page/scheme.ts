/** Key under which the documentation stores the reader's choice: `dark`, `light`, or the system's scheme. */
const CHOSEN = 'vitepress-theme-appearance'
const DARK = '(prefers-color-scheme: dark)'
const system = matchMedia(DARK)

/** Follows the documentation's dark or light scheme, which may differ from the system's. Calls `changed` after each change. */
export function followScheme(changed: () => void): void {
  const follow = (): void => {
    wear(chosen())
    changed()
  }
  follow()
  system.addEventListener('change', follow)
  // Other pages of the documentation report a change by this event, including the page around this one.
  addEventListener('storage', ({ key }) => {
    if (key === CHOSEN) follow()
  })
}

function chosen(): string | null {
  try {
    return localStorage.getItem(CHOSEN)
  } catch {
    // Some pages have no access to storage.
    return null
  }
}

/** Applies the rules for dark always, never, or as in the system. */
function wear(scheme: string | null): void {
  const forced = scheme === 'dark' || scheme === 'light'
  document.documentElement.style.colorScheme = forced ? scheme : ''
  for (const rule of darkRules) rule.media.mediaText = scheme === 'dark' ? 'all' : scheme === 'light' ? 'not all' : DARK
}

const darkRules = Array.from(document.styleSheets)
  .flatMap((sheet) => Array.from(sheet.cssRules))
  .filter((rule) => rule instanceof CSSMediaRule && rule.conditionText === DARK) as CSSMediaRule[]
