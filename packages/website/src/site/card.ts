import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { launch } from '@weir/tooling/browser'
import { ROOT } from './pages.ts'
import { CARD_FILE } from './preview.ts'

/** Draws the picture of link previews in a browser. Most services that show previews accept no SVG. */
export async function drawCard(): Promise<void> {
  const logo = readFileSync(join(ROOT, 'docs/logo.svg'), 'utf8')
  const theme = createRequire(import.meta.url).resolve('vitepress/theme')
  const font = readFileSync(join(theme, '../fonts/inter-roman-latin.woff2')).toString('base64')
  const browser = await launch()
  try {
    const page = await browser.newPage({ viewport: { width: 1200, height: 630 } })
    await page.setContent(`<!DOCTYPE html>
<style>
@font-face { font-family: Inter; font-weight: 100 900; src: url(data:font/woff2;base64,${font}) }
body { margin: 0; height: 630px; display: flex; align-items: center; gap: 72px; padding: 0 96px; box-sizing: border-box; background: #fff; color: #0b2a3d; font: 600 56px/1.25 Inter }
svg { width: 280px; height: 280px; flex: none }
b { display: block; font-size: 112px; color: #0a6ea8 }
</style>${logo}<div><b>Weir</b>A distributed rate limiter for Node.js</div>`)
    await page.evaluate('document.fonts.ready')
    writeFileSync(CARD_FILE, await page.screenshot())
  } finally {
    await browser.close()
  }
}
