import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { parse } from 'acorn'
import { simple } from 'acorn-walk'
import { transform } from 'esbuild'
import MagicString from 'magic-string'

/** A placeholder. VitePress writes the address of the site into all files, and each page replaces it by its own. */
export const BASE = '/__weir_base__/'
/** The variable with the address, for programs in a page. */
const VARIABLE = '__weirBase'

/** The page that servers show for an address without a page. */
const NOWHERE = '404.html'

/**
 * Makes a built site work from any folder of any server.
 *
 * @param later - names of folders that are written later
 */
export async function relocate(directory: string, later: readonly string[]): Promise<void> {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory() && entry.parentPath === directory).map(({ name }) => name)
  for (const entry of entries.filter((one) => one.isFile())) {
    const file = join(entry.parentPath, entry.name)
    const path = relative(directory, file).replaceAll('\\', '/')
    const up = posix.relative(posix.dirname(path), '.') || '.'
    if (path === NOWHERE) rewrite(file, (text) => relocatedNowhere(text, [...folders, ...later]))
    else if (file.endsWith('.html')) rewrite(file, (text) => relocatedPage(text, `${up}/`))
    else if (file.endsWith('.css')) rewrite(file, (text) => text.replaceAll(BASE, `${up}/`))
    else if (file.endsWith('.js')) {
      const { code } = await transform(relocatedProgram(readFileSync(file, 'utf8')), { minify: true, format: 'esm', target: 'es2022' })
      writeFileSync(file, code)
    }
  }
}

/** @param up path from the page to the top of the site */
export function relocatedPage(html: string, up: string): string {
  return relocated(html, up, `var ${VARIABLE}=new URL(${JSON.stringify(up)},location.href).pathname`)
}

/**
 * The page for unknown addresses. It does not know its depth, so it finds the top of the site by the name of one of its folders.
 *
 * @param folders - names at the top of the site
 */
export function relocatedNowhere(html: string, folders: readonly string[]): string {
  const top = `(/^(.*\\/)(?:${folders.join('|')})\\//.exec(location.pathname)||/^(.*\\/)/.exec(location.pathname))[1]`
  const based = `document.head.appendChild(document.createElement("base")).href=${VARIABLE}`
  return relocated(html, './', `var ${VARIABLE}=${top};${based}`)
}

/** @param finds - a program that sets the variable to the top of the site */
function relocated(html: string, up: string, finds: string): string {
  return (
    html
      .replace('<head>', () => `<head><script>${finds}</script>`)
      // VitePress puts the site's data as JSON into a string of its program.
      .replace(
        /(window\.__VP_SITE_DATA__=(?:deserializeFunctions\()?JSON\.parse\(".*?"\)+)(;?)/,
        `$1;window.__VP_SITE_DATA__.base=${VARIABLE}$2`,
      )
      .replace(/(href|src)="\/__weir_base__\//g, `$1="${up}`)
  )
}

/** Replaces the placeholder in all strings of a program by the variable. */
export function relocatedProgram(code: string): string {
  if (!code.includes(BASE)) return code
  const text = new MagicString(code)
  simple(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), {
    Literal(node) {
      if (typeof node.value !== 'string' || !node.value.includes(BASE)) return
      const parts = node.value.split(BASE).map((part) => JSON.stringify(part))
      text.update(node.start, node.end, `(${parts.join(`+${VARIABLE}+`)})`)
    },
    TemplateElement(node) {
      if (node.value.raw.includes(BASE)) text.update(node.start, node.end, node.value.raw.replaceAll(BASE, `\${${VARIABLE}}`))
    },
  })
  return text.toString()
}

function rewrite(file: string, change: (text: string) => string): void {
  writeFileSync(file, change(readFileSync(file, 'utf8')))
}
