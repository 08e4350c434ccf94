/** Where the documentation around this page keeps what its reader has chosen: `dark`, `light`, or what the system has. */
const CHOSEN = 'vitepress-theme-appearance'
const DARK = '(prefers-color-scheme: dark)'
const system = matchMedia(DARK)

/** Wears dark or light as the documentation does, whose reader may have chosen otherwise than the system; calls whenever that changes. */
export function followScheme(changed: () => void): void {
  const follow = (): void => {
    wear(chosen())
    changed()
  }
  follow()
  system.addEventListener('change', follow)
  // Other pages of the documentation tell so, the one around this page too.
  addEventListener('storage', ({ key }) => {
    if (key === CHOSEN) follow()
  })
}

function chosen(): string | null {
  try {
    return localStorage.getItem(CHOSEN)
  } catch {
    // Not every page may keep something.
    return null
  }
}

/** The rules for dark apply always, never, or as the system says. */
function wear(scheme: string | null): void {
  const forced = scheme === 'dark' || scheme === 'light'
  document.documentElement.style.colorScheme = forced ? scheme : ''
  for (const rule of darkRules) rule.media.mediaText = scheme === 'dark' ? 'all' : scheme === 'light' ? 'not all' : DARK
}

const darkRules = Array.from(document.styleSheets)
  .flatMap((sheet) => Array.from(sheet.cssRules))
  .filter((rule) => rule instanceof CSSMediaRule && rule.conditionText === DARK) as CSSMediaRule[]
