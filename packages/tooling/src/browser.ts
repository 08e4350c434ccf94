import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'

const PLACES = [
  process.env['WEIR_CHROMIUM'],
  // The headless shell comes first, because it draws no windows and needs a third less processor time.
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** The path of a Chromium on this machine, if it has one: `WEIR_CHROMIUM` or a package of the system. */
export const CHROMIUM: string | undefined = PLACES.find((place) => place !== undefined && existsSync(place))

export const MISSING =
  'no Chromium on this machine: install it (Debian: apt-get install chromium-headless-shell) or name it in WEIR_CHROMIUM'

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM ?? 'chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

/** Collects a page's errors, and its violations of its Content-Security-Policy, which Chromium reports as errors. */
export function complaints(page: Page): string[] {
  const heard: string[] = []
  page.on('pageerror', (error) => heard.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') heard.push(message.text())
  })
  return heard
}
