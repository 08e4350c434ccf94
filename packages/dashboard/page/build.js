// Builds the dashboard and the sign-in page into one module of src, with script and style inline and the hashes for their
// Content-Security-Policy.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = (/** @type {string} */ file) => fileURLToPath(new URL(file, import.meta.url))
const target = here('../src/page.generated.ts')

/** @param {string} text */
const hash = (text) => `sha256-${createHash('sha256').update(text).digest('base64')}`

const { outputFiles } = await build({
  entryPoints: [here('main.tsx'), here('style.css'), here('sign-in.css')],
  outdir: here('.'),
  bundle: true,
  write: false,
  minify: true,
  format: 'iife',
  target: ['es2022', 'safari16'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
})
const find = (/** @type {string} */ name) => outputFiles.find(({ path }) => path.endsWith(`/${name}`))?.text.trim() ?? ''
const notice =
  '/* Contains Preact and uPlot, both under the MIT licence: https://github.com/preactjs/preact, https://github.com/leeoniya/uPlot */'
const script = `${notice}\n${find('main.js')}`
const style = find('style.css')
const page = readFileSync(here('index.html'), 'utf8')
  .replace('/*style*/', () => style)
  .replace('/*script*/', () => script)
const signInStyle = find('sign-in.css')
const signIn = readFileSync(here('sign-in.html'), 'utf8')
  .replace(/<!--(?!said-->|going-->).*?-->\n/gs, '')
  .replace('/*style*/', () => signInStyle)

const text = `// Made by page/build.js. Don't edit.
export const BUILD: string = ${JSON.stringify(createHash('sha256').update(page).digest('hex').slice(0, 12))}
export const SCRIPT_HASH: string = ${JSON.stringify(hash(script))}
export const STYLE_HASH: string = ${JSON.stringify(hash(style))}
export const PAGE: string = ${JSON.stringify(page)}
export const SIGN_IN_STYLE_HASH: string = ${JSON.stringify(hash(signInStyle))}
export const SIGN_IN: string = ${JSON.stringify(signIn)}
`
// Replaces the file atomically, because tests of other packages may import it meanwhile.
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) {
  writeFileSync(`${target}.${process.pid}`, text)
  renameSync(`${target}.${process.pid}`, target)
}

/** For vitest, which calls the default export of a global set-up. */
export default function setup() {}
